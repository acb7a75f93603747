package node_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// threeVoters is the mesh that most faults are done to.
func threeVoters(t *testing.T, f func(t *testing.T, c *nodetest.Cluster)) {
	t.Helper()
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		f(t, c)
	})
}

func TestOneWayLoss(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		old := c.Leader()
		for _, o := range c.Others(old) {
			c.Network.Cut(o.IP(), old.IP()) // it speaks, but hears nothing
		}
		c.Wait("a leader that hears", time.Minute, func() bool {
			for _, o := range c.Others(old) {
				if l := o.Status().Leader; l == "" || l == old.Name {
					return false
				}
			}
			return true
		})
		c.Network.Heal()
		c.WaitEqual(2 * time.Minute)
	})
}

func TestLossyLinkWithReordering(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		c.Network.Lose(0.05, 5*time.Millisecond)
		for range 20 {
			c.Leader().Token()
		}
		c.WaitEqual(time.Minute)
		c.Grow(2)
		c.WaitEqual(time.Minute)
	})
}

func TestSlowLink(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		slow := c.Others(c.Leader())[0]
		c.Network.Slow(slow.IP(), 80*time.Millisecond)
		for range 10 {
			c.Leader().Token()
		}
		slow.Token()
		c.WaitEqual(time.Minute)
	})
}

func TestFlappingLeadership(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		for range 5 {
			l := c.Leader()
			c.Isolate(l)
			rest := c.Others(l)
			c.Wait("another leader", time.Minute, func() bool {
				s := rest[0].Status().Leader
				return s != "" && s != l.Name
			})
			c.Network.Heal()
		}
		c.Leader()
		c.WaitEqual(time.Minute)
		c.AnyReady().Token()
	})
}

func TestMemberCommandsWithoutALeader(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		last := c.Others(c.Leader())[0]
		for _, o := range c.Others(last) {
			o.Kill()
		}
		c.Wait("it knows that it has no leader", time.Minute, func() bool { return last.Status().Leader == "" })
		if len(last.Members()) != 3 || last.Plan().MeshID == "" {
			t.Error("what is local was not answered")
		}
		problems := strings.Join(last.Status().Problems, "\n")
		if !strings.Contains(problems, "no leader has been heard from for ") {
			t.Errorf("problems: %s", problems)
		}
		begin := time.Now()
		if _, err := last.API().CreateToken(t.Context(), 0, 0); err == nil || !strings.Contains(err.Error(), "no leader") {
			t.Errorf("a token without a quorum: %v", err)
		}
		if took := time.Since(begin); took > 11*time.Second {
			t.Errorf("waited %s for a leader", took)
		}
	})
}

// A node whose mesh is gone says so at once, whatever it was in it.
func TestStatusWithoutAMajority(t *testing.T) {
	for was, survivor := range map[string]func(c *nodetest.Cluster) *nodetest.Instance{
		"a follower": func(c *nodetest.Cluster) *nodetest.Instance { return c.Others(c.Leader())[0] },
		"the leader": func(c *nodetest.Cluster) *nodetest.Instance { return c.Leader() },
		"the leader before": func(c *nodetest.Cluster) *nodetest.Instance {
			old := c.Leader()
			c.Isolate(old)
			rest := c.Others(old)
			c.Wait("another leader", time.Minute, func() bool {
				l := rest[0].Status().Leader
				return l != "" && l != old.Name
			})
			c.Network.Heal()
			c.WaitEqual(time.Minute)
			return old
		},
	} {
		t.Run(was, func(t *testing.T) {
			threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
				last := survivor(c)
				c.Isolate(last)
				c.Wait("it says so", 2500*time.Millisecond, func() bool {
					s := last.Status()
					return !s.Ready && s.Leader == "" && strings.Contains(strings.Join(s.Problems, "\n"), "no leader has been heard from for ")
				})
			})
		})
	}
}

func TestForceLeave(t *testing.T) {
	t.Run("a live node stays", func(t *testing.T) {
		threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
			err := force(c.Leader(), c.Others(c.Leader())[0].Name, false)
			if err == nil || !strings.Contains(err.Error(), "is alive") {
				t.Fatalf("got %v", err)
			}
		})
	})
	t.Run("an unknown node is named", func(t *testing.T) {
		threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
			if err := force(c.Nodes[0], "nobody", false); err == nil || !strings.Contains(err.Error(), "nobody") {
				t.Fatalf("got %v", err)
			}
		})
	})
	t.Run("a dead node goes, and may come back", func(t *testing.T) {
		threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
			dead := c.Others(c.Leader())[0]
			dead.Kill()
			c.Wait("its failure is known", time.Minute, func() bool { return status(c.Leader(), dead.Name) == "failed" })
			if err := force(c.Leader(), dead.Name, false); err != nil {
				t.Fatal(err)
			}
			c.Wait("it is gone", time.Minute, func() bool { return len(c.Leader().Plan().Members) == 2 && c.Leader().Voters() == 1 })
			dead.Restart()
			dead.WaitReady()
			c.Wait("it is back", time.Minute, func() bool { return len(c.Leader().Plan().Members) == 3 })
		})
	})
}

func force(via *nodetest.Instance, name string, revoke bool) error {
	_, err := via.API().ForceLeave(context.Background(), api.ForceLeaveRequest{Name: name, Revoke: revoke})
	return err
}

func status(seenBy *nodetest.Instance, name string) string {
	for _, m := range seenBy.Members() {
		if m.Name == name {
			return m.Status
		}
	}
	return ""
}

func idsOf(seenBy *nodetest.Instance, these []*nodetest.Instance) []string {
	var ids []string
	for _, m := range seenBy.Members() {
		for _, n := range these {
			if n.Name == m.Name {
				ids = append(ids, m.ID)
			}
		}
	}
	return ids
}

// A revoked node is refused everywhere, told why, and the gossip key turns
// without anybody else losing touch.
func TestRevocation(t *testing.T) {
	nodetest.Virtual(t, 4, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		bad := c.Others(c.Leader())[0]
		serial := c.Leader().Plan().Key.Serial
		if err := force(c.Leader(), bad.Name, true); err != nil {
			t.Fatal(err)
		}
		if err := bad.Exited(5 * time.Second); !errors.Is(err, node.ErrRemoved) {
			t.Fatalf("the revoked node ended with %v", err)
		}
		rest := c.Others(bad)
		c.Wait("the key has turned", time.Minute, func() bool {
			for _, o := range rest {
				if k := o.Plan().Key; k.Serial != serial+1 || k.Rotating {
					return false
				}
			}
			return true
		})
		c.Wait("nobody lost touch", time.Minute, func() bool {
			for _, o := range rest {
				if len(o.Status().Problems) > 0 || len(o.Plan().Members) != 3 {
					return false
				}
			}
			return true
		})
		bad.Restart()
		if err := bad.Exited(time.Minute); !errors.Is(err, node.ErrRemoved) {
			t.Fatalf("the revoked node ended with %v", err)
		}
		rest = append(rest, c.Grow(1)...) // newcomers get the new key
		known := gossipKeys(t, bad)
		c.Wait("nobody takes a key that it knows", time.Minute, func() bool {
			return !slices.ContainsFunc(rest, func(o *nodetest.Instance) bool {
				return slices.ContainsFunc(gossipKeys(t, o), func(k string) bool { return slices.Contains(known, k) })
			})
		})
	})
}

// gossipKeys returns the keys that a node has on disk.
func gossipKeys(t *testing.T, of *nodetest.Instance) (list []string) {
	t.Helper()
	id, err := identity.Load(filepath.Join(of.Options.DataDir, "identity"), identity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range id.GossipKeys() {
		list = append(list, string(k.Key))
	}
	return list
}

// A node that is down while the key turns finds its way back.
func TestKeyTurnsWhileANodeIsDown(t *testing.T) {
	nodetest.Virtual(t, 5, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(5)
		others := c.Others(c.Leader())
		down, bad := others[0], others[1]
		down.Kill()
		c.Wait("its failure is known", time.Minute, func() bool { return status(c.Leader(), down.Name) == "failed" })
		if err := force(c.Leader(), bad.Name, true); err != nil {
			t.Fatal(err)
		}
		_ = bad.Exited(time.Minute)
		c.Wait("the key has turned", time.Minute, func() bool {
			k := c.Leader().Plan().Key
			return k.Serial == 2 && !k.Rotating
		})
		down.Move() // and at another address, too
		down.Restart()
		down.WaitReady()
		c.Wait("all see it", time.Minute, func() bool {
			for _, o := range c.Others(down) {
				if status(o, down.Name) != "alive" {
					return false
				}
			}
			return true
		})
		c.WaitEqual(time.Minute)
	})
}

// Two nodes that were away together ask each other first, and neither has the key.
func TestKeyTurnsWhileTwoNodesAreDown(t *testing.T) {
	nodetest.Virtual(t, 7, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(5)
		others := c.Others(c.Leader())
		down, bad := others[:2], others[2]
		for _, n := range down {
			n.Kill()
		}
		c.Wait("their failure is known", time.Minute, func() bool {
			return status(c.Leader(), down[0].Name) == "failed" && status(c.Leader(), down[1].Name) == "failed"
		})
		// And replaced: with two of five voters dead, a third must not go.
		c.Wait("only live nodes vote", 2*time.Minute, func() bool {
			votes := 0
			for _, m := range c.Leader().Members() {
				if m.Role == "nonvoter" {
					continue
				}
				if m.Status != "alive" {
					return false
				}
				votes++
			}
			return votes == 5
		})
		if err := force(c.Leader(), bad.Name, true); err != nil {
			t.Fatal(err)
		}
		_ = bad.Exited(time.Minute)
		c.Wait("the key has turned", time.Minute, func() bool {
			k := c.Leader().Plan().Key
			return k.Serial == 2 && !k.Rotating
		})
		for _, n := range down {
			n.Move()
			n.Restart()
		}
		c.Wait("all see all", 2*time.Minute, func() bool {
			for _, n := range c.Others(bad) {
				for _, m := range n.Members() {
					if m.Status != "alive" {
						return false
					}
				}
			}
			return true
		})
		c.WaitEqual(time.Minute)
	})
}

// A node that can't be taken back, because its name was given away, must not keep
// the leader from its other work.
func TestOneBadNodeDoesNotStopTheLeader(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		old := c.Grow(1)[0]
		old.Kill()
		c.Wait("its failure is known", time.Minute, func() bool { return status(c.Leader(), old.Name) == "failed" })
		if err := force(c.Leader(), old.Name, false); err != nil {
			t.Fatal(err)
		}
		heir := c.Add()
		heir.Options.Name = old.Name
		heir.Options.Join, heir.Options.Token = []string{c.Leader().Addr()}, c.Leader().Token()
		heir.Start()
		heir.WaitReady()
		leaver := c.Others(c.Leader())[0] // the old one hears of no leader
		old.Restart()
		if err := leaver.API().Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := leaver.Exited(time.Minute); !errors.Is(err, node.ErrLeft) {
			t.Fatalf("ended with %v", err)
		}
	})
}

// Certificates renew themselves, and nobody notices.
func TestCertificatesRenew(t *testing.T) {
	nodetest.Virtual(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		const life = 10 * time.Minute
		if err := c.Nodes[0].Stop(); err != nil {
			t.Fatal(err)
		}
		c.Nodes[0].Reset()
		c.Nodes[0].Options.Bootstrap, c.Nodes[0].Options.CertificateLife = true, life
		c.Nodes[0].Start()
		c.Nodes[0].WaitReady()
		other := c.Add()
		other.Options.Join, other.Options.Token = []string{c.Nodes[0].Addr()}, c.Nodes[0].Token()
		other.Start()
		other.WaitReady()
		for range 5 {
			<-time.After(life / 2)
			for _, n := range c.Nodes {
				n.WaitReady()
			}
		}
		for _, n := range c.Nodes {
			id, err := identity.Load(filepath.Join(n.Options.DataDir, "identity"), identity.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(id.NotAfter()); left < 0 {
				t.Errorf("%s runs with a certificate that ended %s ago", n.Name, -left)
			}
		}
		n := c.Grow(1)[0]
		if len(n.Members()) != 3 {
			t.Errorf("a newcomer sees %v", n.Members())
		}
	})
}

// Three of five voters are lost for good: the survivors are told who votes now,
// and no generation is issued twice.
func TestRecoveryFromTheLossOfAQuorum(t *testing.T) {
	nodetest.Virtual(t, 5, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(5)
		generation := c.Leader().Status().Generation
		for _, n := range c.Nodes[:3] {
			n.Kill()
		}
		survivors := c.Nodes[3:]
		ids := idsOf(survivors[0], survivors)
		for _, n := range survivors {
			n.Kill()
			n.Recover(ids)
			n.Restart()
		}
		for _, n := range survivors {
			n.WaitReady()
		}
		for _, n := range c.Nodes[:3] {
			if err := force(survivors[0], n.Name, false); err != nil {
				t.Fatal(err)
			}
		}
		c.WaitEqual(time.Minute)
		if g := c.Leader().Status().Generation; g <= generation {
			t.Fatalf("generation %d after %d", g, generation)
		}
		c.Grow(1)
		c.WaitVoters(3)
	})
}
