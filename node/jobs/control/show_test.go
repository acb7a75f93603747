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

// A node of another version writes no recipe for those that have the data: they might
// read it as something else.
func TestAnotherVersionWritesNoRecipe(t *testing.T) {
	s := &plan.State{Members: map[string]plan.Member{
		"a": {ID: "a", Name: "na", Version: "v1"}, "b": {ID: "b", Name: "nb", Version: "v1"}, "c": {ID: "c", Name: "nc", Version: "v2"},
	}}
	owners := []string{"a", "b"}
	for name, want := range map[string]string{"na": "", "nb": "", "nc": "node nc runs v2, but node na v1"} {
		c := &Jobs{cfg: Config{Name: name}}
		if got := c.unlikeWriter(s, owners); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("asked of %s: %q, want %q", name, got, want)
		}
	}
}
