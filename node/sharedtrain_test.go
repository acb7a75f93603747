package node_test

import (
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// The engine itself, on three nodes: whoever dies in between, each epoch has the
// weights that it has on one.
func TestSharedJobLearnsTheSame(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		for name, replicas := range map[string]int{"g": 1, "whole": 2} { // of the same content
			generated(t, c.Nodes[0], tiny(name, replicas))
			c.Wait("all hold the dataset", time.Minute, func() bool { return copied(c.Nodes[0].Dataset(name), replicas, c.Nodes...) })
		}
		epochs, hidden, batch := 60, 8, 64
		start := func(dataset, strategy string) string {
			id, err := c.Nodes[0].API().StartJob(t.Context(), api.TrainRequest{
				Dataset: dataset, Strategy: strategy, Deterministic: true, Epochs: &epochs, Hidden: &hidden, Batch: &batch, Fanout: []int{4, 4},
			})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		want := waitState(c, c.Nodes[0], start("whole", "single"), "done")
		same := func(j api.Job) {
			t.Helper()
			if len(j.History) != epochs {
				t.Errorf("job %s has %d epochs", j.ID, len(j.History))
			}
			for i, e := range j.History {
				if e.Epoch != i+1 || e.Weights != want.History[i].Weights || *e.ValAccuracy != *want.History[i].ValAccuracy {
					t.Fatalf("epoch %d of job %s is %+v, and alone it is %+v", i+1, j.ID, e, want.History[i])
				}
			}
		}
		j := waitState(c, c.Nodes[0], start("g", "centric"), "done")
		same(j)
		if e := j.History[0]; e.Rows.Remote == 0 || e.Bytes.Feature == 0 || e.Requests.Feature == 0 {
			t.Errorf("no rows came at first: %+v", e)
		}
		if e := j.History[9]; e.Rows.Kept == 0 || e.Bytes.Gradient == 0 || e.Strategy != "centric" || e.Eval.Bytes.Activation == 0 {
			t.Errorf("%+v, evaluated %+v", e, e.Eval)
		}
		for _, n := range c.Nodes { // so that there is time for what follows
			c.Network.Slow(n.IP(), 10*time.Millisecond)
		}
		id := start("g", "leap")
		under(c, c.Nodes[0], id, 5)
		dead := c.Others(c.Leader())[0]
		other := c.Others(dead)[0]
		dead.Kill()
		c.Wait("it goes on without", time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 2 })
		under(c, other, id, len(jobOn(other, id).History)+5)
		dead.Restart()
		j = waitState(c, other, id, "done")
		same(j)
		if len(ages(j)) < 3 || len(j.Nodes) != 3 {
			t.Errorf("it was done by %v in generations %v", j.Nodes, ages(j))
		}
	})
}
