package node_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// isolated asks for a job whose groups train in isolation.
func isolated(epochs int, set ...api.Setting) api.TrainRequest {
	hidden, batch := 8, 64
	return api.TrainRequest{
		Dataset: "g", Strategy: "grappa", Deterministic: true, Epochs: &epochs, Hidden: &hidden, Batch: &batch, Fanout: []int{4, 4},
		Set: append([]api.Setting{{Key: "grappa.loader", Value: "strict"}, {Key: "grappa.swept", Value: "1"}}, set...),
	}
}

// A node that dies in the middle of a sweep takes nothing with it: the others come to
// the weights, and to the share of edges, of a job that nothing happened to.
func TestIsolatedJobOutlivesANode(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		generated(t, c.Nodes[0], tiny("g", 1))
		c.Wait("all hold the dataset", time.Minute, func() bool { return copied(c.Nodes[0].Dataset("g"), 1, c.Nodes...) })
		start := func() string {
			id, err := c.Nodes[0].API().StartJob(t.Context(), isolated(40, api.Setting{Key: "grappa.period", Value: "7"}))
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		want := waitState(c, c.Nodes[0], start(), "done")
		for _, n := range c.Nodes { // so that there is time for what follows
			c.Network.Slow(n.IP(), 10*time.Millisecond)
		}
		id := start()
		under(c, c.Nodes[0], id, 9)
		dead := c.Others(c.Leader())[0]
		other := c.Others(dead)[0]
		dead.Kill()
		c.Wait("it goes on without", time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 2 })
		under(c, other, id, len(jobOn(other, id).History)+3)
		dead.Restart()
		j := waitState(c, other, id, "done")
		if len(j.History) != 40 || len(ages(j)) < 3 {
			t.Fatalf("%d epochs in generations %v", len(j.History), ages(j))
		}
		for i, e := range j.History {
			w := want.History[i]
			if e.Weights != w.Weights || *e.ValAccuracy != *w.ValAccuracy || e.Super != i/7+1 || e.Seen != w.Seen || e.Seen <= 0 || i > 0 && e.Seen < want.History[i-1].Seen {
				t.Fatalf("epoch %d is %+v, and undisturbed it is %+v", i+1, e, w)
			}
		}
		if first, last := want.History[0].Seen, want.History[39].Seen; first >= last {
			t.Errorf("%g of all edges are seen at first, and %g in the end", first, last)
		}
	})
}

// Nodes die and come while groups are computed in phases: the weights are those of a job in
// one phase that nothing happened to.
func TestPhasedJobOutlivesANodeAndTakesOneIn(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		generated(t, c.Nodes[0], tiny("g", 1))
		c.Wait("all hold the dataset", time.Minute, func() bool { return copied(c.Nodes[0].Dataset("g"), 1, c.Nodes...) })
		start := func(phases string) string {
			id, err := c.Nodes[0].API().StartJob(t.Context(), isolated(40,
				api.Setting{Key: "grappa.period", Value: "7"}, api.Setting{Key: "grappa.groups", Value: "6"}, api.Setting{Key: "grappa.phases", Value: phases}))
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		want := waitState(c, c.Nodes[0], start("1"), "done")
		for _, n := range c.Nodes { // so that there is time for what follows
			c.Network.Slow(n.IP(), 10*time.Millisecond)
		}
		id := start("4")
		under(c, c.Nodes[0], id, 5)
		dead := c.Others(c.Leader())[0]
		other := c.Others(dead)[0]
		dead.Kill() // its phases are computed by two
		c.Wait("it goes on without", time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 2 })
		under(c, other, id, len(jobOn(other, id).History)+3)
		dead.Restart()
		c.Wait("it goes on with three", time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 3 })
		j := waitState(c, other, id, "done")
		if len(j.History) != 40 || len(ages(j)) < 3 {
			t.Fatalf("%d epochs in generations %v", len(j.History), ages(j))
		}
		for i, e := range j.History {
			if w := want.History[i]; e.Weights != w.Weights || *e.ValAccuracy != *w.ValAccuracy || e.Seen != w.Seen {
				t.Fatalf("epoch %d is %+v, and undisturbed in one phase it is %+v", i+1, e, w)
			}
		}
	})
}

// Nodes whose models are averaged want a group each when a job begins, and take in one
// that comes later without.
func TestAveragedModelsTakeANodeIn(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.Wait("all may vote", time.Minute, func() bool { return c.Nodes[0].Voters() == 3 })
		generated(t, c.Nodes[0], tiny("g", 1))
		c.Wait("all hold the dataset", time.Minute, func() bool { return copied(c.Nodes[0].Dataset("g"), 1, c.Nodes...) })
		ask := isolated(40, api.Setting{Key: "grappa.groups", Value: "2"}, api.Setting{Key: "grappa.average_every", Value: "2"})
		ask.Deterministic = false
		_, err := c.Nodes[0].API().StartJob(t.Context(), ask)
		refused(t, "three models of two groups", err, "grappa.average_every=2: each node has a model, and there are groups for 2 of 3 nodes only")
		away := c.Others(c.Leader())[0]
		other := c.Others(away)[0]
		away.Kill()
		c.Wait("two own all", time.Minute, func() bool {
			_, err = other.API().StartJob(t.Context(), ask)
			return err == nil
		})
		id := other.Plan().Jobs[0].ID
		for _, n := range c.Others(away) { // so that there is time for what follows
			c.Network.Slow(n.IP(), 10*time.Millisecond)
		}
		under(c, other, id, 3)
		away.Restart()
		c.Wait("it goes on with three", time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 3 })
		if j := waitState(c, other, id, "done"); len(j.History) != 40 || len(ages(j)) < 2 || !strings.Contains(strings.Join(j.Notes, " "), "trains nothing") {
			t.Errorf("%d epochs in generations %v, with the notes %q", len(j.History), ages(j), j.Notes)
		}
	})
}

// Three real nodes, asked as users ask them.
func TestIsolatedJobOnRealNodes(t *testing.T) {
	nodetest.Loopback(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		generated(t, c.Nodes[0], tiny("g", 0))
		c.Wait("more groups than shards are refused, once the dataset is ready", time.Minute, func() bool {
			_, err := c.Nodes[1].API().StartJob(t.Context(), isolated(2, api.Setting{Key: "grappa.groups", Value: "9"}))
			return err != nil && strings.Contains(err.Error(), "grappa.groups=9: each needs a shard of its own, and the dataset has 8")
		})
		id, err := c.Nodes[1].API().StartJob(t.Context(), isolated(6, api.Setting{Key: "grappa.period", Value: "2"}))
		if err != nil {
			t.Fatal(err)
		}
		j := waitState(c, c.Nodes[2], id, "done")
		for i, e := range j.History {
			// What an epoch before the switch brings ahead is counted with the one after. Labels
			// come before the first.
			if b := e.Bytes; b.Gradient == 0 || b.Feature+b.Activation+b.Model != 0 || i > 0 && b.Topology != 0 || (b.Shard > 0) != (i%2 == 0) || e.Super != i/2+1 || e.Rows.Remote != 0 || e.Eval.Bytes.Activation == 0 {
				t.Errorf("%+v", e)
			}
		}
		if len(j.Nodes) != 3 || len(j.Notes) == 0 || !strings.Contains(strings.Join(j.Notes, "\n"), "never meet: take more --epochs") {
			t.Errorf("%v are told %q", j.Nodes, j.Notes)
		}
	})
}
