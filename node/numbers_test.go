package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
	"github.com/hopmesh/hopmesh/node/nodetest/school"
)

// upgraded starts a node anew as a program of other numbers.
func upgraded(t *testing.T, n *nodetest.Instance, version string, numbers mesh.Numbers) {
	t.Helper()
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	n.Options.Version, n.Options.Numbers = version, numbers
	n.Restart()
	n.WaitReady()
}

// computing returns numbers of computing, counted from this program's.
func computing(low, high int) mesh.Numbers {
	return mesh.Numbers{Computing: mesh.Range{Min: recipe.Computing + low, Max: recipe.Computing + high}}
}

// knows waits until the others know which commands a node knows.
func knows(c *nodetest.Cluster, name string, numbers mesh.Numbers) {
	c.T.Helper()
	c.Wait("others know what "+name+" knows", time.Minute, func() bool {
		return slices.ContainsFunc(c.Nodes[0].Members(), func(m api.Member) bool {
			return m.Name == name && m.Numbers != nil && m.Numbers.Plan == numbers.Plan.String()
		})
	})
}

// saysOf waits until a job has one problem, which has these parts.
func saysOf(c *nodetest.Cluster, n *nodetest.Instance, id string, parts ...string) {
	c.T.Helper()
	c.Wait("job "+id+" says why it waits", time.Minute, func() bool {
		j := jobOn(n, id)
		return len(j.Problems) == 1 && !slices.ContainsFunc(parts, func(s string) bool { return !strings.Contains(j.Problems[0], s) })
	})
}

// Nodes that compute by different numbers do not share a job, whatever their versions are called.
func TestSharedJobWantsOneNumber(t *testing.T) {
	inSchoolWith(t, 3, 0, 500*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		id := startedAs(t, c.Nodes[0], "leap", 60)
		under(c, c.Nodes[0], id, 5)
		begin := time.Now()
		upgraded(t, c.Nodes[0], "v2", computing(1, 1))
		waitState(c, c.Nodes[0], id, "queued")
		saysOf(c, c.Nodes[0], id, fmt.Sprintf("job %s waits, since it computes by number %d and node n0 (hopmesh v2) by %d: it goes on by itself once", id, recipe.Computing, recipe.Computing+1))
		epochs := 3
		_, err := c.Nodes[1].API().StartJob(t.Context(), api.TrainRequest{Dataset: "g", Strategy: "leap", Epochs: &epochs})
		refused(t, "unlike numbers", err, "must compute by the same number", "v2")
		for _, r := range s.Runs() {
			if r.At.After(begin) && slices.Contains(r.Nodes, "n0") {
				t.Errorf("it is shared by %v", r.Nodes)
			}
		}
		upgraded(t, c.Nodes[0], "v3", computing(0, 1))
		upgraded(t, c.Nodes[1], "v4", computing(0, 2))
		rising(t, waitState(c, c.Nodes[0], id, "done"), 60, 2)
	})
}

// A job goes on among the nodes that compute by its number, as long as they hold all shards, and by
// another number once no node has its own. The leader proposes that only when the last member knows
// how, and then nobody joins who does not.
func TestJobOutlivesAnUpgrade(t *testing.T) {
	inSchoolWith(t, 3, 1, 500*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		older := computing(0, 0)
		older.Plan = mesh.Range{Min: 1, Max: int(plan.KindSetComputing) - 1}
		upgraded(t, c.Nodes[2], "v1", older)
		knows(c, "n2", older)
		id := startedAs(t, c.Nodes[0], "leap", 60)
		under(c, c.Nodes[0], id, 5)
		begin := time.Now()
		upgraded(t, c.Nodes[0], "v2", computing(1, 1))
		under(c, c.Nodes[1], id, len(jobOn(c.Nodes[1], id).History)+5)
		for _, r := range s.Runs() {
			if r.At.After(begin) && slices.Contains(r.Nodes, "n0") {
				t.Errorf("it is shared by %v", r.Nodes)
			}
		}
		upgraded(t, c.Nodes[1], "v2", computing(1, 1))
		older.Computing = computing(1, 1).Computing
		upgraded(t, c.Nodes[2], "v1b", older)
		saysOf(c, c.Nodes[0], id, fmt.Sprintf("computes by number %d and node ", recipe.Computing), "or all nodes of the mesh compute by another number")
		knows(c, "n2", older)
		rounds := time.Now().Add(10 * time.Second)
		c.Wait("the leader has tried it in ten rounds", time.Minute, func() bool { return time.Now().After(rounds) })
		if j := jobOn(c.Nodes[0], id); j.State != "queued" || !c.Nodes[2].Running() {
			t.Fatalf("the job is %s although a member does not know how it can go on", j.State)
		}
		token := c.Nodes[0].Token()
		upgraded(t, c.Nodes[2], "v2", computing(1, 1))
		complete(t, waitState(c, c.Nodes[0], id, "done"), 60)
		i := c.Add()
		i.Options.Join, i.Options.Token = []string{c.Nodes[0].Addr()}, token
		i.Options.Version, i.Options.Numbers = "v1b", older
		i.Start()
		if err := i.Exited(time.Minute); err == nil || !strings.Contains(err.Error(), "the mesh has made use of what this node's version of hopmesh does not know: install the one that node ") {
			t.Errorf("an earlier version was let in: %v", err)
		}
	})
}
