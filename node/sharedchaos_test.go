package node_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// troubled has other troubles befall a job for each seed.
func troubled(t *testing.T, seeds ...uint64) {
	t.Helper()
	for _, seed := range seeds {
		nodetest.Virtual(t, 4, func(t *testing.T, c *nodetest.Cluster) {
			random := rand.New(rand.NewPCG(seed, 0))
			c.WaitVoters(3)
			generated(t, c.Nodes[0], tiny("g", 3))
			c.Wait("all hold the dataset", time.Minute, func() bool { return copied(c.Nodes[0].Dataset("g"), 3, c.Nodes...) })
			epochs, hidden, batch := 40, 4, 100
			start := func(strategy string) string {
				id, err := c.Nodes[0].API().StartJob(t.Context(), api.TrainRequest{
					Dataset: "g", Strategy: strategy, Deterministic: true, Epochs: &epochs, Hidden: &hidden, Batch: &batch, Fanout: []int{3, 3},
				})
				if err != nil {
					t.Fatal(err)
				}
				return id
			}
			want := waitState(c, c.Nodes[0], start("single"), "done")
			for _, n := range c.Nodes {
				c.Network.Slow(n.IP(), 15*time.Millisecond)
			}
			id := start("leap")
			for range 8 {
				<-time.After(time.Duration(random.Int64N(int64(8 * time.Second))))
				n := c.Nodes[random.IntN(4)]
				switch {
				case !n.Running():
					n.Restart()
				case random.IntN(4) == 0:
					c.Network.Heal()
				case random.IntN(3) == 0:
					c.Isolate(n)
				case len(c.Others(n)) == 3:
					n.Kill()
				}
			}
			c.Network.Heal()
			for _, n := range c.Nodes {
				if !n.Running() {
					n.Restart()
				}
			}
			j := waitState(c, c.Nodes[3], id, "done")
			if len(j.History) != epochs {
				t.Errorf("seed %d: %d epochs", seed, len(j.History))
			}
			for i, e := range j.History {
				if e.Epoch != i+1 || e.Weights != want.History[i].Weights {
					t.Fatalf("seed %d: epoch %d is %+v, and alone it is %+v", seed, i+1, e, want.History[i])
				}
			}
			t.Logf("seed %d: generations %v", seed, ages(j))
		})
	}
}
