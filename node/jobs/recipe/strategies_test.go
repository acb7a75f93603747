package recipe

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/api"
)

// Every strategy of the list may be asked for by name, and no other.
func TestStrategiesThatMayBeAskedFor(t *testing.T) {
	all := Strategies.Choices()
	for _, name := range all {
		if got, why, err := StrategyOf(name, "", false, &plan.State{}, plan.Dataset{}); err != nil || name != "auto" && got != name || why == "" {
			t.Errorf("%s is %q, since %q: %v", name, got, why, err)
		}
	}
	for _, name := range []string{"auto", "single", "centric", "leap", "p3", "grappa", "pipe", "graph", "local"} {
		if !slices.Contains(all, name) {
			t.Errorf("%s can't be asked for", name)
		}
	}
	want := `there is no strategy "ddp": choose one of ` + strings.Join(all, ", ")
	if _, _, err := StrategyOf("ddp", "", false, &plan.State{}, plan.Dataset{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// Defaults that depend on the mesh are in the recipe: it is the same wherever it goes on.
func TestDefaultsOfTheMeshAreWrittenDown(t *testing.T) {
	d := sweepable
	d.Nodes = []string{"a", "b", "c"}
	for i := range 12 {
		d.Shards = append(d.Shards, plan.Shard{ShardAbout: plan.ShardAbout{Bytes: 100}, Holders: []int{i % 3}})
	}
	for memory, want := range map[uint64]string{0: "3", 4000: "3", 1200: "9"} {
		s := &plan.State{Members: map[string]plan.Member{"a": {Memory: 9000}, "b": {Memory: memory}, "c": {}, "d": {Memory: 1}}}
		r, _, err := Of(api.TrainRequest{Dataset: "d", Strategy: "grappa"}, "grappa", nil, s, d)
		if got := r.Sharing.Values["grappa.groups"]; err != nil || got != want {
			t.Errorf("with %d bytes there are %s groups, not %s: %v", memory, got, want, err)
		}
	}
}
