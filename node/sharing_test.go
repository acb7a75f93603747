package node

import (
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
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
