package kills

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/jobs/recipe"
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

// A job is the same whichever nodes own shards when it is created: one that is away for a moment
// makes no other job, whose weights would differ from the first epoch on.
func TestAbsencesMakeNoOtherJob(t *testing.T) {
	for _, strategy := range strategies.Computed() {
		text := map[int]string{}
		for owners := 1; owners <= nodes; owners++ {
			d := plan.Dataset{Stage: plan.Ready, About: plan.About{Vertices: 24_000, Edges: 240_000, Features: 32, Classes: 4, Splits: []plan.SplitSizes{{Train: 1, Val: 1, Test: 1}}}}
			s := &plan.State{Members: map[string]plan.Member{}}
			for i := range owners {
				d.Nodes = append(d.Nodes, fmt.Sprint("n", i))
				s.Members[d.Nodes[i]] = plan.Member{Memory: 1 << 30}
			}
			for i := range dataset().Shards {
				d.Shards = append(d.Shards, plan.Shard{ShardAbout: plan.ShardAbout{Bytes: 1}, Holders: []int{i % owners}})
			}
			var err error
			if _, text[owners], err = recipe.Of(ask(strategy), strategy, nil, s, d); err != nil {
				t.Fatalf("%s on %d nodes: %v", strategy, owners, err)
			}
			if text[owners] != text[1] {
				t.Errorf("%s on %d nodes is\n%s and on one\n%s", strategy, owners, text[owners], text[1])
			}
		}
	}
}

// The epoch from which on weights differ is found, and other jobs are not compared.
func TestOutcomesAreCompared(t *testing.T) {
	usual := outcome{"r", []string{"a", "b", "c"}}
	for _, c := range []struct {
		o    outcome
		from int
	}{
		{usual, 0},
		{outcome{"r", []string{"x", "b", "c"}}, 1},
		{outcome{"r", []string{"a", "b", "x"}}, 3},
		{outcome{"r", []string{"a", "b"}}, 3},
		{outcome{"r", nil}, 1},
		{outcome{"r", []string{"a", "b", "c", "d"}}, 4},
	} {
		if from, err := c.o.from(usual); from != c.from || err != nil {
			t.Errorf("%v differs from epoch %d on, not %d: %v", c.o, from, c.from, err)
		}
	}
	if _, err := (outcome{"s", usual.weights}).from(usual); err == nil || !strings.Contains(err.Error(), "recipe s in place of r") {
		t.Error(err)
	}
}

// All nodes are there once each is alive, votes and owns shards.
func TestTogether(t *testing.T) {
	var members []api.Member
	for i := range nodes {
		if together(members) {
			t.Errorf("%d nodes suffice", i)
		}
		members = append(members, api.Member{Status: "alive", Role: "voter", Shards: 4})
	}
	if !together(members) {
		t.Error("all nodes are not enough")
	}
	for what, change := range map[string]func(m *api.Member){
		"failed":   func(m *api.Member) { m.Status = "failed" },
		"nonvoter": func(m *api.Member) { m.Role = "nonvoter" },
		"shards":   func(m *api.Member) { m.Shards = 0 },
	} {
		other := slices.Clone(members)
		if change(&other[1]); together(other) {
			t.Errorf("%s: a node is missing", what)
		}
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
