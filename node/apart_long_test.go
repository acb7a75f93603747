//go:build long

package node_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
	"github.com/hopmesh/hopmesh/node/nodetest/school"
)

// Two nodes can't reach each other, and the leader sees both: all soon say for whom they
// wait, and then the job goes on without one of them, who has its part again later.
func TestSharedJobOutlivesACutPair(t *testing.T) {
	inSchoolWith(t, 3, 1, 2*time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		id := startedAs(t, c.Nodes[0], "leap", 1000)
		under(c, c.Nodes[0], id, 5)
		leader := c.Leader()
		a, b := cutPair(c)
		begin := time.Now()
		c.Wait("they say for whom they wait", 14*time.Second, func() bool {
			return sayingAll(a.Status().Problems, "node "+b.Name+" has not answered node "+a.Name+"'s question for ", "(epoch ", "step ", "check the network between the two") ||
				sayingAll(b.Status().Problems, "node "+a.Name+" has not answered node "+b.Name+"'s question for ", "(epoch ", "step ", "check the network between the two")
		})
		t.Logf("said after %s: %q, %q", time.Since(begin), a.Status().Problems, b.Status().Problems)
		for _, n := range c.Nodes {
			c.Wait(n.Name+" says it of the job", 5*time.Second, func() bool {
				return sayingAll(jobOn(n, id).Problems, "has not answered node ", "'s question for ", "check the network between the two")
			})
		}
		c.Wait("it goes on without one", time.Minute, func() bool { return len(jobOn(leader, id).Nodes) == 2 })
		t.Logf("goes on after %s", time.Since(begin))
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("it went on after %s", took)
		}
		j := jobOn(leader, id)
		out := a
		if slices.Contains(j.Nodes, a.Name) {
			out = b
		}
		if !slices.Contains(j.Nodes, leader.Name) || out.Status().Leader != leader.Name {
			t.Errorf("%v share it, and %s leads", j.Nodes, out.Status().Leader)
		}
		<-time.After(10 * time.Second)
		for _, n := range c.Nodes {
			if p := jobOn(n, id).Problems; len(p) != 1 || !sayingAll(p, "node "+out.Name+" is left out of the work on dataset g until ", "can't reach each other", a.Name, b.Name) {
				t.Errorf("%s shows %q", n.Name, p)
			}
		}
		c.Network.Heal()
		<-time.After(time.Until(begin.Add(10 * time.Minute)))
		c.Wait("it has its part again", 2*time.Minute, func() bool { return len(jobOn(leader, id).Nodes) == 3 })
		n := len(jobOn(leader, id).History)
		under(c, leader, id, n+2)
		if j := jobOn(out, id); len(j.Problems) > 0 || j.State != "running" || len(ages(j)) < 3 {
			t.Errorf("%s in generations %v, %q", j.State, ages(j), j.Problems)
		}
	})
}

// Where nobody can be left out, the job ends in time, names both, and goes on when it is
// resumed.
func TestSharedJobEndsWhereNobodyCanBeLeftOut(t *testing.T) {
	inSchoolWith(t, 3, 0, 500*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		id := startedAs(t, c.Nodes[0], "leap", 30)
		under(c, c.Nodes[0], id, 5)
		a, b := cutPair(c)
		begin := time.Now()
		<-time.After(4 * time.Minute)
		c.Wait("it ends", 5*time.Minute, func() bool { return jobOn(c.Nodes[0], id).State == "failed" })
		j := jobOn(c.Nodes[0], id)
		t.Logf("after %s: %s", time.Since(begin), j.Error)
		if !sayingAll([]string{j.Error}, "node "+a.Name, "node "+b.Name, "look at the network between") {
			t.Errorf("%s", j.Error)
		}
		c.Network.Heal()
		if err := c.Nodes[0].API().ResumeJob(t.Context(), id, api.ResumeRequest{}); err != nil {
			t.Fatal(err)
		}
		rising(t, waitState(c, c.Nodes[0], id, "done"), 30, 2)
	})
}
