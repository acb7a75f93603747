package node_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// A job on a graph without features learns a row of each vertex without being asked to, by all owners
// of its shards. Any of them is killed at some moment, and the weights with the rows are those of a
// job that nothing happened to.
func TestLearntRowsOutliveANode(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		random := rand.New(rand.NewPCG(4, 5))
		c.WaitVoters(3)
		bare := tiny("g", 2)
		bare.Features = 0
		generated(t, c.Nodes[0], bare)
		epochs, hidden, batch := 20, 8, 64
		start := func() string {
			c.WaitVoters(3)
			c.Wait("all hold and own shards", 2*time.Minute, func() bool {
				d := c.Nodes[0].Dataset("g")
				return copied(d, 2, c.Nodes...) && len(owned(d)) == 3
			})
			id, err := c.Nodes[0].API().StartJob(t.Context(), api.TrainRequest{
				Dataset: "g", Deterministic: true, Epochs: &epochs, Hidden: &hidden, Batch: &batch, Fanout: []int{4, 4},
			})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		want := waitState(c, c.Nodes[0], start(), "done")
		if want.Strategy != "leap" || len(want.Nodes) != 3 {
			t.Errorf("%s trains it on %v", want.Strategy, want.Nodes)
		}
		for _, n := range c.Nodes { // so that there is time for what follows
			c.Network.Slow(n.IP(), 10*time.Millisecond)
		}
		for _, victim := range c.Nodes {
			id, on := start(), c.Others(victim)[0]
			under(c, on, id, 5)
			<-time.After(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
			before := jobOn(on, id)
			victim.Kill()
			c.Wait("it goes on without "+victim.Name, time.Minute, func() bool {
				j := jobOn(on, id)
				return j.State == "done" || j.Generation > before.Generation && !slices.Contains(j.Nodes, victim.Name) && j.Epoch > 0
			})
			j := waitState(c, on, id, "done")
			if len(j.History) != epochs {
				t.Fatalf("the job has %d epochs", len(j.History))
			}
			for i, e := range j.History {
				if w := want.History[i]; e.Weights != w.Weights || *e.ValAccuracy != *w.ValAccuracy {
					t.Fatalf("%s was killed: epoch %d is %+v, and undisturbed it is %+v", victim.Name, i+1, e, w)
				}
			}
			victim.Restart()
		}
	})
}

// Where rows are with their owners and one more node each, any node is lost without a row, and the
// job comes to the weights of one of which each node has all rows. Any node gives its model out when it
// is done.
func TestRowsWithTheirOwnersOutliveANode(t *testing.T) {
	nodetest.Virtual(t, 4, func(t *testing.T, c *nodetest.Cluster) {
		random := rand.New(rand.NewPCG(6, 5))
		c.WaitVoters(3)
		bare := tiny("g", 2)
		bare.Features = 0
		generated(t, c.Nodes[0], bare)
		epochs, hidden, batch := 20, 8, 64
		start := func(at string) string {
			c.WaitVoters(3)
			c.Wait("all hold and own shards", 2*time.Minute, func() bool {
				d := c.Nodes[0].Dataset("g")
				return len(owned(d)) == 4
			})
			id, err := c.Nodes[0].API().StartJob(t.Context(), api.TrainRequest{
				Dataset: "g", Deterministic: true, Epochs: &epochs, Hidden: &hidden, Batch: &batch, Fanout: []int{4, 4},
				Set: []api.Setting{{Key: "train.embeddings_at", Value: at}},
			})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		var model []byte // what it predicts
		want := waitState(c, c.Nodes[0], start("all"), "done")
		for _, n := range c.Nodes { // so that there is time for what follows
			c.Network.Slow(n.IP(), 10*time.Millisecond)
		}
		for _, victim := range c.Nodes {
			id, on := start("owners"), c.Others(victim)[0]
			under(c, on, id, 5)
			<-time.After(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
			before := jobOn(on, id)
			victim.Kill()
			c.Wait("it goes on without "+victim.Name, time.Minute, func() bool {
				j := jobOn(on, id)
				return j.State == "done" || j.Generation > before.Generation && !slices.Contains(j.Nodes, victim.Name) && j.Epoch > 0
			})
			j := waitState(c, on, id, "done")
			if len(j.History) != epochs {
				t.Fatalf("the job has %d epochs", len(j.History))
			}
			for i, e := range j.History {
				if w := want.History[i]; e.Weights != w.Weights || *e.ValAccuracy != *w.ValAccuracy {
					t.Fatalf("%s was killed: epoch %d is %+v, and undisturbed it is %+v", victim.Name, i+1, e, w)
				}
			}
			if j.History[0].Rows.Remote == 0 {
				t.Error("all rows are on each node")
			}
			for _, n := range c.Others(victim) {
				var npy bytes.Buffer
				if err := n.API().Predict(t.Context(), id, api.PredictRequest{Format: ".npy"}, &npy); err != nil {
					t.Errorf("%s: %v", n.Name, err)
				}
				if model == nil {
					model = npy.Bytes()
				} else if !bytes.Equal(model, npy.Bytes()) {
					t.Errorf("%s predicts something else", n.Name)
				}
			}
			victim.Restart()
		}
		// The nodes of a job that is stopped have parts of its model, which any of them puts together.
		epochs, model = 10_000, nil
		id := start("owners")
		under(c, c.Nodes[0], id, 5)
		if err := c.Nodes[0].API().StopJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		waitState(c, c.Nodes[0], id, "stopped")
		for _, n := range c.Nodes {
			var npy bytes.Buffer
			if err := n.API().Predict(t.Context(), id, api.PredictRequest{Format: ".npy"}, &npy); err != nil {
				t.Errorf("%s, of a job that was stopped: %v", n.Name, err)
			}
			if model == nil {
				model = npy.Bytes()
			} else if !bytes.Equal(model, npy.Bytes()) {
				t.Errorf("%s predicts something else of a job that was stopped", n.Name)
			}
		}
	})
}
