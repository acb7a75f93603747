package recipe

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// Every strategy of the list may be asked for by name, and no other.
func TestStrategiesThatMayBeAskedFor(t *testing.T) {
	all := Strategies.Choices()
	for _, name := range all {
		if got, why, err := StrategyOf(name, &plan.State{}, plan.Dataset{}); err != nil || name != "auto" && got != name || why == "" {
			t.Errorf("%s is %q, since %q: %v", name, got, why, err)
		}
	}
	for _, name := range []string{"auto", "single", "centric", "leap", "p3", "grappa", "pipe", "graph", "local"} {
		if !slices.Contains(all, name) {
			t.Errorf("%s can't be asked for", name)
		}
	}
	want := `there is no strategy "ddp": choose one of ` + strings.Join(all, ", ")
	if _, _, err := StrategyOf("ddp", &plan.State{}, plan.Dataset{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
