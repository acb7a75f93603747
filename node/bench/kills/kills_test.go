package kills

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/node/bench"
)

// Each strategy has as many events of each signal as the protocol says, at moments of their own
// within a job.
func TestEvents(t *testing.T) {
	list := all("", false)
	if want := len(strategies.Computed()) * 2 * events; len(list) != want {
		t.Errorf("%d events in place of %d", len(list), want)
	}
	moments := map[float64]bool{}
	for _, e := range list {
		node, share := e.chance()
		if again, same := e.chance(); again != node || same != share {
			t.Errorf("%s differs the second time", e)
		}
		if node < 0 || node >= nodes || share < 0.1 || share >= 0.7 || moments[share] {
			t.Errorf("%s: node %d after %g of the job", e, node, share)
		}
		moments[share] = true
		if signals[e.Signal] == 0 {
			t.Errorf("%s has no signal", e)
		}
	}
	if few := all("pipe kill,leap", true); len(few) != 3 || few[0].String() != "leap kill 0" {
		t.Errorf("got %v", few)
	}
}

// The worst of a strategy's events counts, and one that failed has no times.
func TestFigures(t *testing.T) {
	e := func(n int) event { return event{"leap", "kill", n} }
	got := map[string]bench.Figure{}
	for _, f := range figures([]Row{
		{event: e(0), Lost: 1, Noticed: 2, Rested: 3, Same: true}, {event: e(1), Noticed: 4, Rested: 9, Same: true}, {event: e(2), Failed: "it did"},
	}) {
		got[strings.TrimPrefix(f.Name, "leap, 3 times kill -9: ")] = f
	}
	for name, want := range map[string]struct {
		value float64
		holds bool
	}{
		"same weights": {2, false}, "steps lost at worst": {1, true}, "noticed, at worst": {4, false}, "next step, at worst": {9, false},
	} {
		if f := got[name]; f.Value != want.value || f.Holds != want.holds {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := got["next step, median"]; f.Value != 6 || len(got) != 5 {
		t.Errorf("%+v", got)
	}
}

// Finished events are kept for the program that measured them.
func TestKept(t *testing.T) {
	cfg := bench.Config{Program: "kills_test.go"}
	cfg.Scale.Dir = t.TempDir()
	k, err := load(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.add(Row{event: event{"leap", "kill", 0}, Lost: 1}); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]int{"kills_test.go": 1, "suite.go": 0} {
		cfg.Program = program
		if k, err = load(cfg); err != nil || len(k.rows) != want {
			t.Errorf("%s: %v, %v", program, k, err)
		}
	}
}
