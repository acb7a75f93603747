package node_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
	"github.com/hopmesh/hopmesh/node/nodetest/school"
)

// A small job of strategy auto is trained by one of the nodes that hold all shards. It goes on there
// after it was stopped, and another node begins it anew if that one is lost.
func TestSmallJobIsTrainedByOneNode(t *testing.T) {
	inSchool(t, 3, 100*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		epochs := 80
		start := func(deterministic bool) string {
			id, err := c.Nodes[0].API().StartJob(t.Context(), api.TrainRequest{Dataset: "g", Epochs: &epochs, Deterministic: deterministic})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		checked := func(j api.Job) {
			t.Helper()
			if len(j.Nodes) != 1 || len(j.Schedule) != 1 || j.Schedule[0].Strategy != "single" || !strings.HasPrefix(j.Schedule[0].Why, "one node holds all shards and takes about ") {
				t.Errorf("it runs on %v by %+v", j.Nodes, j.Schedule)
			}
			if j.Strategy != "auto" || !strings.Contains(j.Why, "node "+j.Nodes[0]+" trains alone: one node holds all shards") || len(j.Problems) > 0 {
				t.Errorf("%s: %s, %q", j.Strategy, j.Why, j.Problems)
			}
		}
		id := start(false)
		under(c, c.Nodes[0], id, 10)
		j := jobOn(c.Nodes[0], id)
		checked(j)
		runner := named(c, j.Nodes[0])
		other := c.Others(runner)[0]
		if err := other.API().StopJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		n := len(waitState(c, other, id, "stopped").History)
		if err := other.API().ResumeJob(t.Context(), id, api.ResumeRequest{}); err != nil {
			t.Fatal(err)
		}
		under(c, other, id, n+10)
		if j = jobOn(other, id); j.Nodes[0] != runner.Name || j.History[0].Generation == j.Generation {
			t.Errorf("resumed, it runs on %v, and its first epoch is of generation %d", j.Nodes, j.History[0].Generation)
		}
		begin := time.Now()
		runner.Kill()
		c.Wait("another node begins it", time.Minute, func() bool { j := jobOn(other, id); return j.State == "running" && j.Nodes[0] != runner.Name })
		if took := time.Since(begin); took > 8*time.Second {
			t.Errorf("that took %s", took)
		}
		j = waitState(c, other, id, "done")
		checked(j)
		if complete(t, j, epochs); j.History[0].Generation != j.Generation {
			t.Errorf("in the end it is %+v", j)
		}
		if said := s.Said(); len(said) != 3 || said[2] != id+" after 0" {
			t.Errorf("ran %v", said)
		}
		runner.Restart()
		runner.WaitReady()
		checked(waitState(c, other, start(true), "done"))
	})
}

// Where no node holds all shards all owners share a small job, and where several jobs wait each node
// has one.
func TestSmallJobsBesideEachOther(t *testing.T) {
	inSchool(t, 3, time.Second, func(t *testing.T, c *nodetest.Cluster, _ *school.School) {
		n := c.Nodes[0]
		generated(t, n, tiny("spread", 1))
		var on []string
		for range 3 {
			on = append(on, waitState(c, n, startedAs(t, n, "auto", 20), "running").Nodes...)
		}
		if slices.Sort(on); len(slices.Compact(on)) != 3 {
			t.Errorf("three jobs run on %v", on)
		}
		epochs := 3
		id, err := n.API().StartJob(t.Context(), api.TrainRequest{Dataset: "spread", Epochs: &epochs})
		if err != nil {
			t.Fatal(err)
		}
		if j := waitState(c, n, id, "done"); len(j.Nodes) != 3 {
			t.Errorf("it ran on %v: %s", j.Nodes, j.Why)
		}
	})
}
