package node_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// whole asks for a job whose steps are the whole graph, with rows of 8 columns between
// three layers.
func whole(strategy string, epochs int, set ...api.Setting) api.TrainRequest {
	layers, hidden, rate := 3, 8, 0.05
	return api.TrainRequest{Dataset: "g", Strategy: strategy, Deterministic: true, Epochs: &epochs, Layers: &layers, Hidden: &hidden, Rate: &rate, Set: set}
}

// pipedOutlivesANode starts a job twice with each setting of a strategy, and kills a node of
// the second.
func pipedOutlivesANode(t *testing.T, strategies map[api.Setting]string) {
	t.Helper()
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		generated(t, c.Nodes[0], tiny("g", 1))
		for set, strategy := range strategies {
			all := func() bool { return copied(c.Nodes[0].Dataset("g"), 1, c.Nodes...) }
			c.Wait("all hold the dataset", time.Minute, all)
			start := func() string {
				id, err := c.Nodes[0].API().StartJob(t.Context(), whole(strategy, 30, set))
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
			<-time.After(45 * time.Millisecond) // rows are on their way
			dead := c.Others(c.Leader())[0]
			other := c.Others(dead)[0]
			dead.Kill()
			c.Wait("it goes on without", time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 2 })
			under(c, other, id, len(jobOn(other, id).History)+3)
			dead.Restart()
			j := waitState(c, other, id, "done")
			if len(j.History) != 30 || len(ages(j)) < 2 {
				t.Fatalf("%s, %v: %d epochs in generations %v", strategy, set, len(j.History), ages(j))
			}
			for i, e := range j.History {
				if w := want.History[i]; e.Weights != w.Weights || *e.ValAccuracy != *w.ValAccuracy {
					t.Fatalf("%s, %v: epoch %d is %+v, and undisturbed it is %+v", strategy, set, i+1, e, w)
				}
			}
		}
	})
}

// Three real nodes, asked as users ask them.
func TestPipedJobsOnRealNodes(t *testing.T) {
	nodetest.Loopback(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		generated(t, c.Nodes[0], tiny("g", 1))
		const (
			row      = 8 * 4 // hidden numbers
			vertices = 400
			framing  = 64 + 32
			// From each of three stages to the next and back, in eight chunks.
			piped = 2 * 2 * (vertices*row + 8*framing)
			// To make a history, once in a period, from each to the next, chunk by chunk.
			history = 2 * (vertices*row + 8*framing)
			// A way's vertices are seen by two others at most, before two layers and after.
			mirrored = 2 * 2 * (2*vertices*row + 8*3*framing)
		)
		for strategy, set := range map[string]api.Setting{"pipe": {Key: "pipe.period", Value: "100"}, "graph": {Key: "pipe.ways", Value: "3"}} {
			id, err := "", error(nil)
			c.Wait("the dataset is ready", time.Minute, func() bool {
				id, err = c.Nodes[1].API().StartJob(t.Context(), whole(strategy, 20, set))
				return err == nil || !strings.Contains(err.Error(), "being imported")
			})
			if err != nil {
				t.Fatal(err)
			}
			j := waitState(c, c.Nodes[2], id, "done")
			for i, e := range j.History {
				b := e.Bytes
				switch {
				// Stages of one way have nobody to add up gradients with: they tell what
				// they have learnt where that is judged, which is after each epoch.
				case (b.Gradient == 0) != (strategy == "pipe") || (b.Model != 0) != (strategy == "pipe") || i > 0 && b.Feature+b.Topology+b.Shard != 0 || e.Strategy != strategy:
					t.Errorf("%s, epoch %d: %+v", strategy, i+1, e)
				case i == 0 && strategy == "pipe" && b.Activation != piped+history:
					t.Errorf("pipe sends %d bytes of rows in the first epoch, not %d", b.Activation, piped+history)
				case i > 0 && strategy == "pipe" && b.Activation != piped:
					t.Errorf("pipe sends %d bytes of rows in epoch %d, not %d", b.Activation, i+1, piped)
				case strategy == "graph" && (b.Activation == 0 || b.Activation > mirrored):
					t.Errorf("graph sends %d bytes of rows in epoch %d, and %d at most", b.Activation, i+1, mirrored)
				}
			}
			if len(j.Nodes) != 3 || j.Best == nil || *j.Best.ValAccuracy < 0.7 {
				t.Errorf("%s: on %v, the best is %+v", strategy, j.Nodes, j.Best)
			}
		}
	})
}
