package node_test

import (
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// Nodes that keep the edges of their own shards only, and send for others, lose a node in the
// middle of a job and take it in again: the job comes to the weights that it would have had.
func TestJobsWithEdgesElsewhereOutliveANode(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		generated(t, c.Nodes[0], tiny("g", 1))
		for _, strategy := range []string{"leap", "centric", "p3"} {
			c.Wait("all hold the dataset", time.Minute, func() bool { return copied(c.Nodes[0].Dataset("g"), 1, c.Nodes...) })
			start := func() string {
				epochs, hidden, batch := 40, 8, 64
				id, err := c.Nodes[0].API().StartJob(t.Context(), api.TrainRequest{
					Dataset: "g", Strategy: strategy, Deterministic: true, Epochs: &epochs, Hidden: &hidden, Batch: &batch, Fanout: []int{4, 4},
					Set: []api.Setting{{Key: "topology", Value: "sharded"}},
				})
				if err != nil {
					t.Fatal(err)
				}
				return id
			}
			want := waitState(c, c.Nodes[0], start(), "done")
			if b := want.History[9].Bytes; b.Topology == 0 {
				t.Errorf("%s sent for no edges: %+v", strategy, b)
			}
			for _, n := range c.Nodes { // so that there is time for what follows
				c.Network.Slow(n.IP(), 10*time.Millisecond)
			}
			id := start()
			under(c, c.Nodes[0], id, 5)
			<-time.After(45 * time.Millisecond) // edges are on their way
			dead := c.Others(c.Leader())[0]
			other := c.Others(dead)[0]
			dead.Kill()
			c.Wait("it goes on without", time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 2 })
			under(c, other, id, len(jobOn(other, id).History)+3)
			dead.Restart()
			j := waitState(c, other, id, "done")
			if len(j.History) != 40 || len(ages(j)) < 3 {
				t.Fatalf("%s: %d epochs in generations %v", strategy, len(j.History), ages(j))
			}
			for i, e := range j.History {
				if w := want.History[i]; e.Weights != w.Weights || *e.ValAccuracy != *w.ValAccuracy {
					t.Fatalf("%s: epoch %d is %+v, and undisturbed it is %+v", strategy, i+1, e, w)
				}
			}
			for _, n := range c.Nodes {
				c.Network.Slow(n.IP(), 0)
			}
		}
	})
}
