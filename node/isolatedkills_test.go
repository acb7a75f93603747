package node_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// Each node of a job whose groups train in isolation is killed, at some moment of these epochs, and
// comes back before the job ends or does not: the weights are those of a job that nothing happened to.
// Later jobs find the owners of shards as earlier kills have left them.
func isolatedKills(t *testing.T, epochs ...int) {
	t.Helper()
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		random := rand.New(rand.NewPCG(4, uint64(len(epochs))))
		c.WaitVoters(3)
		generated(t, c.Nodes[0], tiny("g", 2))
		whole := func() {
			c.WaitVoters(3)
			c.Wait("all hold and own shards", 2*time.Minute, func() bool {
				d := c.Nodes[0].Dataset("g")
				return copied(d, 2, c.Nodes...) && len(owned(d)) == 3
			})
		}
		start := func() string {
			whole()
			ask := isolated(20, api.Setting{Key: "grappa.period", Value: "4"}, api.Setting{Key: "grappa.groups", Value: "3"})
			id, err := c.Nodes[0].API().StartJob(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		want := waitState(c, c.Nodes[0], start(), "done")
		for _, n := range c.Nodes { // so that there is time for what follows
			c.Network.Slow(n.IP(), 10*time.Millisecond)
		}
		kills := 0
		// die kills a node once a job has so many epochs more, and returns another when the job goes on.
		die := func(id string, victim *nodetest.Instance, after int) *nodetest.Instance {
			on := c.Others(victim)[0]
			under(c, on, id, after)
			<-time.After(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
			before := jobOn(on, id)
			victim.Kill()
			kills++
			c.Wait("it goes on without "+victim.Name, time.Minute, func() bool {
				j := jobOn(on, id)
				return j.State == "done" || j.Generation > before.Generation && !slices.Contains(j.Nodes, victim.Name) && j.Epoch > 0
			})
			return on
		}
		for i, after := range epochs {
			for at, victim := range c.Nodes {
				id := start()
				on := die(id, victim, after)
				back := random.IntN(2) == 0
				if back {
					victim.Restart()
					c.WaitVoters(3)
				}
				if back && i%2 == 0 {
					second := c.Nodes[(at+1+random.IntN(2))%3]
					on = die(id, second, min(19, len(jobOn(on, id).History)+1+random.IntN(3)))
				}
				j := waitState(c, on, id, "done")
				if len(j.History) != len(want.History) {
					t.Fatalf("%s was killed after %d epochs: the job has %d", victim.Name, after, len(j.History))
				}
				for i, e := range j.History {
					if w := want.History[i]; e.Weights != w.Weights || *e.ValAccuracy != *w.ValAccuracy || e.Super != w.Super || e.Seen != w.Seen {
						t.Fatalf("%s was killed after %d epochs: epoch %d is %+v, and undisturbed it is %+v", victim.Name, after, i+1, e, w)
					}
				}
				for _, n := range c.Nodes {
					if !n.Running() {
						n.Restart()
					}
				}
			}
		}
		t.Logf("%d kills", kills)
	})
}

func TestIsolatedJobOutlivesAnyNode(t *testing.T) { isolatedKills(t, 8) }
