package node_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// Three machines, one command on each: they form one mesh, all of them vote, and
// all see the same.
func TestThreeNodesFormAMesh(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.Wait("three voters", 10*time.Second, func() bool { return c.Nodes[0].Voters() == 3 })
		c.WaitEqual(5 * time.Second)
		for _, n := range c.Nodes {
			leaders := 0
			for _, m := range n.Members() {
				if m.Status != "alive" || m.Address == "" || m.Version != "test" || m.Device != "cpu" {
					t.Errorf("%s sees %+v", n.Name, m)
				}
				if m.Role == "leader" {
					leaders++
				}
			}
			if len(n.Members()) != 3 || leaders != 1 {
				t.Errorf("%s sees %+v", n.Name, n.Members())
			}
			if s := n.Status(); len(s.Problems) > 0 || s.Device != "cpu" || s.DeviceReason == "" {
				t.Errorf("%s says %+v", n.Name, s)
			}
			vitals, err := n.API().Vitals(t.Context())
			if err != nil || len(vitals) != 3 {
				t.Fatalf("%s has the vitals %+v (%v)", n.Name, vitals, err)
			}
			for _, v := range vitals {
				if v.Error != "" || v.MemoryUsed == 0 || len(v.Links) == 0 || v.Links[0].To[0] != 'n' || v.Links[0].RTTSeconds <= 0 {
					t.Errorf("%s has the vitals %+v", n.Name, v)
				}
			}
		}
	})
}

func TestVotersFollowTheSizeOfTheMesh(t *testing.T) {
	nodetest.Virtual(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		for _, step := range []struct{ size, voters int }{{2, 1}, {3, 3}, {4, 3}, {5, 5}, {7, 5}} {
			c.Grow(step.size - len(c.Nodes))
			c.Wait(fmt.Sprintf("%d voters of %d", step.voters, step.size), time.Minute, func() bool {
				return c.Nodes[0].Voters() == step.voters
			})
		}
		// And back, by leaving: founder first, so that leadership moves as well.
		for _, step := range []struct{ size, voters int }{{6, 5}, {5, 5}, {4, 3}, {3, 3}, {2, 1}, {1, 1}} {
			leaver := c.Nodes[7-step.size-1]
			if err := leaver.API().Leave(t.Context()); err != nil {
				t.Fatalf("%s: %v", leaver.Name, err)
			}
			if err := leaver.Exited(time.Minute); !errors.Is(err, node.ErrLeft) {
				t.Fatalf("%s ended with %v", leaver.Name, err)
			}
			last := c.Nodes[6]
			c.Wait(fmt.Sprintf("%d voters of %d", step.voters, step.size), time.Minute, func() bool {
				return last.Voters() == step.voters && len(last.Plan().Members) == step.size && last.Status().Ready
			})
		}
		err := c.Nodes[6].API().Leave(t.Context())
		if e, ok := errors.AsType[*api.Error](err); !ok || e.Status != 409 {
			t.Fatalf("the last node could leave: %v", err)
		}
	})
}

func TestKilledLeaderIsReplacedAndComesBack(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		old := c.Leader()
		generation := old.Status().Generation
		old.Kill()
		took := c.Wait("another leader", 5*time.Second, func() bool {
			l := c.Others(old)[0].Status().Leader
			return l != "" && l != old.Name
		})
		t.Logf("another leader after %s", took)
		c.Wait("its failure is known", time.Minute, func() bool {
			return len(c.Leader().Status().Problems) > 0
		})
		if g := c.Leader().Status().Generation; g < generation {
			t.Fatalf("the generation went back from %d to %d", generation, g)
		}
		c.Leader().Token() // the plan can still change
		old.Restart()
		old.WaitReady()
		c.WaitEqual(30 * time.Second)
		c.Wait("all is well", time.Minute, func() bool { return len(c.Leader().Status().Problems) == 0 })
	})
}

func TestAllNodesRestartAtOnce(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		for _, n := range c.Nodes {
			n.Kill()
		}
		for _, n := range c.Nodes {
			n.Restart()
		}
		for _, n := range c.Nodes {
			n.WaitReady()
		}
		c.WaitEqual(30 * time.Second)
	})
}

// A flag left in a unit file founds nothing anew.
func TestBootstrapFlagLeftOnIsHarmless(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		mesh := c.Nodes[0].Plan().MeshID
		for _, n := range c.Nodes {
			n.Kill()
		}
		for _, n := range c.Nodes {
			n.Options.Bootstrap = true
			n.Restart()
		}
		for _, n := range c.Nodes {
			n.WaitReady()
			if got := n.Plan().MeshID; got != mesh {
				t.Fatalf("%s is in mesh %s, not %s", n.Name, got, mesh)
			}
		}
		if got := len(c.Leader().Members()); got != 3 {
			t.Fatalf("%d members", got)
		}
	})
}

func TestNodesMoveToOtherAddresses(t *testing.T) {
	for name, pick := range map[string]func(c *nodetest.Cluster) *nodetest.Instance{
		"a follower": func(c *nodetest.Cluster) *nodetest.Instance { return c.Others(c.Leader())[0] },
		"the leader": func(c *nodetest.Cluster) *nodetest.Instance { return c.Leader() },
	} {
		t.Run(name, func(t *testing.T) {
			nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
				c.WaitVoters(3)
				n := pick(c)
				n.Kill()
				n.Move()
				n.Restart()
				n.WaitReady()
				c.Wait("everyone knows where it is", 2*time.Minute, func() bool {
					for _, o := range c.Nodes {
						for _, m := range o.Members() {
							if m.Name == n.Name && (m.Address != n.Addr() || m.Status != "alive") {
								return false
							}
						}
					}
					return true
				})
				c.WaitEqual(30 * time.Second)
			})
		})
	}
	t.Run("the only voter", func(t *testing.T) {
		nodetest.Virtual(t, 2, func(t *testing.T, c *nodetest.Cluster) {
			n := c.Leader()
			n.Kill()
			n.Move()
			n.Restart()
			for _, o := range c.Nodes {
				o.WaitReady()
			}
			c.WaitEqual(time.Minute)
		})
	})
}

func TestSixFreshNodesJoinAtTheSameInstant(t *testing.T) {
	nodetest.Virtual(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		begin := time.Now()
		c.Grow(6)
		t.Logf("all in after %s", time.Since(begin))
		c.WaitEqual(10 * time.Second)
		if got := len(c.Nodes[0].Plan().Members); got != 7 {
			t.Fatalf("%d members", got)
		}
	})
}

// Many nodes, then random kills and restarts: five voters throughout, all see all.
func TestTwelveNodes(t *testing.T) {
	grown(t, 12, 4)
}

// grown forms a mesh of n nodes and then kills and restarts some.
func grown(t *testing.T, n, kills int) {
	t.Helper()
	nodetest.Virtual(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		c.Grow(n - 1)
		begin := time.Now()
		c.Wait("all see all", 30*time.Second, func() bool { return allSeeAll(c, n) })
		t.Logf("all see all %s after the last was in", time.Since(begin))
		c.WaitVoters(5)
		random := rand.New(rand.NewPCG(uint64(n), 0))
		for range kills {
			n := c.Nodes[random.IntN(len(c.Nodes))]
			n.Kill()
			c.Wait("five voters and a leader", time.Minute, func() bool {
				l := c.Leader()
				return l.Status().Ready && l.Voters() == 5
			})
			n.Restart()
			n.WaitReady()
		}
		c.Wait("all see all", 2*time.Minute, func() bool { return allSeeAll(c, n) })
		c.WaitVoters(5)
		c.WaitEqual(30 * time.Second)
	})
}

func allSeeAll(c *nodetest.Cluster, want int) bool {
	for _, n := range c.Nodes {
		seen := 0
		for _, m := range n.Members() {
			if m.Status == "alive" {
				seen++
			}
		}
		if seen != want {
			return false
		}
	}
	return true
}
