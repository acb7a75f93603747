package control

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/epoch"
)

// Why nodes share a job as they do is told of those that do so now.
func TestWhyFollowsTheGeneration(t *testing.T) {
	s := &plan.State{Members: map[string]plan.Member{"a": {ID: "a", Name: "na"}, "b": {ID: "b", Name: "nb"}}}
	first := plan.Epoch{Epoch: 1, Generation: 7, Strategy: "leap", Why: "leap is faster on three"}
	second := plan.Epoch{Epoch: 2, Generation: 9, Strategy: "p3", Why: "p3 is faster on two"}
	last := plan.Epoch{Epoch: 3, Generation: 11}
	for _, c := range []struct {
		state      plan.JobState
		strategy   string
		generation uint64
		nodes      []string
		history    []plan.Epoch
		want       string
	}{
		{plan.Queued, "auto", 0, nil, nil, "as asked"},
		{plan.Running, "auto", 7, []string{"a", "b", "c"}, nil, "3 nodes own shards of dataset g since generation 7: they choose when they have met"},
		{plan.Running, "auto", 7, []string{"a", "b", "c"}, []plan.Epoch{first}, first.Why},
		{plan.Running, "auto", 9, []string{"a", "b"}, []plan.Epoch{first}, "2 nodes own shards of dataset g since generation 9: they choose when they have met"},
		{plan.Running, "auto", 9, []string{"a", "b"}, []plan.Epoch{first, second}, second.Why},
		{plan.Running, "auto", 11, []string{"b"}, []plan.Epoch{first, second, last}, "node nb owns every shard of dataset g since generation 11, and trains alone"},
		{plan.Done, "auto", 11, []string{"b"}, []plan.Epoch{first, second, last}, "node nb owns every shard of dataset g since generation 11, and trains alone"},
		{plan.Stopped, "auto", 9, []string{"a", "b"}, []plan.Epoch{first}, first.Why}, // before the others had come to anything
		{plan.Failed, "auto", 7, []string{"a", "b"}, nil, "as asked"},
		{plan.Running, "leap", 9, []string{"a", "b"}, nil, "as asked"},
	} {
		j := plan.Job{State: c.state, Strategy: c.strategy, Why: "as asked", Generation: c.generation, Nodes: c.nodes, History: c.history, DatasetName: "g"}
		if got := whyNow(s, j); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// The model that is ahead in an epoch has the best score, of the same scores that of the
// lowest loss on validation as in the plan, or, where nothing was judged, the
// lowest loss.
func TestWhoIsAhead(t *testing.T) {
	judged := func(n, model int, score float64) plan.Epoch {
		return plan.Epoch{Epoch: n, Model: model, Loss: score, Eval: &epoch.Eval{Score: score, Val: &score}}
	}
	surer := func(e plan.Epoch, loss float64) plan.Epoch {
		e.Eval.Loss = loss
		return e
	}
	for _, c := range []struct {
		history []plan.Epoch
		want    int
	}{
		{[]plan.Epoch{judged(1, 0, 0.5)}, 0},
		{[]plan.Epoch{judged(1, 0, 0.5), judged(1, 1, 0.75), judged(1, 2, 0.75), judged(2, 3, 1)}, 1},
		{[]plan.Epoch{judged(1, 0, 0.5), surer(judged(1, 1, 0.75), 3), surer(judged(1, 2, 0.75), 1), surer(judged(1, 3, 0.75), 2)}, 2},
		{[]plan.Epoch{{Epoch: 1, Loss: 2}, {Epoch: 1, Model: 1, Loss: 1}, {Epoch: 1, Model: 2, Loss: 3}}, 1},
	} {
		if got := ahead(slices.Clone(c.history)); got.Model != c.want || got.Epoch != 1 {
			t.Errorf("%+v: %+v", c.history, got)
		}
	}
}

// A job gets the highest number of computing that its nodes and the one which writes its recipe have
// in common, and runs on no node without it.
func TestNumbersOfComputing(t *testing.T) {
	numbers := func(low, high uint32) plan.Numbers { return plan.Numbers{Min: low, Max: high} }
	s := &plan.State{Members: map[string]plan.Member{
		"a": {ID: "a", Name: "na", Version: "v1"}, "b": {ID: "b", Name: "nb", Version: "v1b", Computes: numbers(1, 2)},
		"c": {ID: "c", Name: "nc", Version: "v2", Computes: numbers(2, 3)},
	}}
	for _, c := range []struct {
		name   string
		owners []string
		n      uint32
		unlike string
	}{
		{"na", []string{"a", "b"}, 1, ""},
		{"nb", []string{"c"}, 2, ""},
		{"nc", nil, 3, ""},
		{"nc", []string{"a", "b"}, 0, "node nc (hopmesh v2) computes by 2-3, but node na (hopmesh v1) by 1"},
	} {
		jobs := &Jobs{cfg: Config{Name: c.name}}
		if n, unlike := jobs.number(s, c.owners); n != c.n || !strings.Contains(unlike, c.unlike) || (unlike == "") != (c.unlike == "") {
			t.Errorf("asked of %s for %v: %d, %q", c.name, c.owners, n, unlike)
		}
	}
	for number, want := range map[uint32]string{0: "computes by number 1 and node nc (hopmesh v2) by 2-3: ", 1: "node nc", 2: "number 2 and node na (hopmesh v1) by 1: ", 3: "node na"} {
		if got := unlike(s, plan.Job{ID: "j1", Computing: number}, []string{"a", "b", "c"}); !strings.Contains(got, want) {
			t.Errorf("a job of %d: %q, want %q", number, got, want)
		}
	}
	for text, want := range map[string]string{`{}`: "or all nodes of the mesh compute by another number", `{"sharing":{"deterministic":true}}`: "since it is deterministic"} {
		if got := unlike(s, plan.Job{ID: "j1", Recipe: text}, []string{"c"}); !strings.Contains(got, want) {
			t.Errorf("a job of recipe %s: %q, want %q", text, got, want)
		}
	}
	if got := unlike(s, plan.Job{Computing: 2}, []string{"b", "c"}); got != "" {
		t.Errorf("nodes that have it: %q", got)
	}
}
