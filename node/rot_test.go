package node_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// flipped changes one bit of each command.
func flipped(l *raft.Log) bool {
	if l.Type != raft.LogCommand || len(l.Data) == 0 {
		return false
	}
	l.Data[len(l.Data)/2] ^= 4
	return true
}

// instead replaces a text in commands by another of the same length.
func instead(was, now string) func(l *raft.Log) bool {
	return func(l *raft.Log) bool {
		if !bytes.Contains(l.Data, []byte(was)) {
			return false
		}
		l.Data = bytes.ReplaceAll(l.Data, []byte(was), []byte(now))
		return true
	}
}

// marked reports whether the status of a node has an entry on the log of another.
func marked(seenBy, of *nodetest.Instance, repaired bool) bool {
	return slices.ContainsFunc(seenBy.Status().Damage, func(d api.Damage) bool {
		return d.Kind == "log" && d.Node == of.Name && d.Repaired == repaired && d.What != ""
	})
}

// markedByAll waits until every running node's status says that the log of one was repaired.
func markedByAll(c *nodetest.Cluster, of *nodetest.Instance) {
	c.T.Helper()
	c.Wait("every status names "+of.Name, time.Minute, func() bool {
		return !slices.ContainsFunc(c.Nodes, func(n *nodetest.Instance) bool { return n.Running() && !marked(n, of, true) })
	})
}

func notLeading(c *nodetest.Cluster) *nodetest.Instance { return c.Others(c.Leader())[0] }

// A node whose log was damaged while it was down does not use it. It comes back by itself, with
// the plan of the others, and every status says so.
func TestDamagedLogOfAStoppedNode(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		n := notLeading(c)
		_ = n.Stop()
		n.Rot(false, flipped)
		n.Start()
		took := c.Wait("it is back", time.Minute, func() bool { return n.Status().Ready })
		t.Logf("back after %s", took)
		c.WaitVoters(3)
		c.WaitEqual(time.Minute)
		markedByAll(c, n)
	})
}

// It comes back without the gossip key, too, which it can't know to be another one than the plan
// names: it has no plan.
func TestDamagedLogAndGossipKey(t *testing.T) {
	nodetest.Virtual(t, 4, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		n := notLeading(c)
		_ = n.Stop()
		n.Rot(false, flipped)
		ring, err := json.Marshal([]identity.GossipKey{identity.NewGossipKey(1)})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(n.Options.DataDir, "identity", "keyring.json"), ring, 0o600); err != nil {
			t.Fatal(err)
		}
		<-time.After(30 * time.Second) // the others know that it is gone
		n.Start()
		took := c.Wait("it is back", time.Minute, func() bool { return n.Status().Ready })
		t.Logf("back after %s", took)
		c.WaitVoters(3)
		c.WaitEqual(time.Minute)
		markedByAll(c, n)
	})
}

// It is the same for the node that led.
func TestDamagedLogOfTheLeader(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		n := c.Leader()
		n.Rot(false, flipped)
		// What is written next is read back to be sent. Whether it takes effect is open.
		_, _ = c.Others(n)[0].API().CreateToken(t.Context(), 0, 0)
		c.Wait("another leads", time.Minute, func() bool { return c.Leader() != n || marked(n, n, true) })
		c.WaitVoters(3)
		c.WaitEqual(time.Minute)
		markedByAll(c, n)
	})
}

// A node whose disk has another entry, with a right checksum, follows another plan. The leader
// finds that, and the node gives its plan up.
func TestPlanThatDiffers(t *testing.T) {
	for _, leads := range []bool{false, true} {
		nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
			c.WaitVoters(3)
			n := notLeading(c)
			if leads {
				n = c.Leader()
			}
			others := c.Others(n)
			restartWithAnotherPlan(c, n, others[1], []*nodetest.Instance{n, others[0]}, leads)
			if leads && c.Leader() != n {
				t.Fatal("another leads than the one with the newest log")
			}
			others[1].Start()
			// It may lead until every voter was asked.
			c.Wait("it is back and another leads", 2*time.Minute, func() bool {
				leader := others[0].Status().Leader
				return n.Status().Ready && marked(others[0], n, true) && leader != "" && leader != n.Name
			})
			c.WaitVoters(3)
			c.WaitEqual(time.Minute)
			markedByAll(c, n)
			for _, m := range n.Members() {
				if m.Name == "nX" {
					t.Error("it has kept its own plan")
				}
			}
		})
	}
}

// restartWithAnotherPlan kills all nodes and starts some, one of them with another plan on its
// disk, in which another node has another name. If that one leads, it leads those again, before
// anybody compares: it has written what nobody else has.
func restartWithAnotherPlan(c *nodetest.Cluster, n, other *nodetest.Instance, start []*nodetest.Instance, leads bool) {
	if leads {
		for _, o := range c.Others(n) {
			c.Network.Partition([]string{n.IP()}, []string{o.IP()})
		}
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		_, _ = n.API().CreateToken(ctx, 0, 0) // it waits for a majority in vain
	}
	n.Kill()
	for _, o := range c.Others(n) {
		o.Kill()
	}
	c.Network.Heal()
	n.Rot(true, instead(`"name":"`+other.Name+`"`, `"name":"nX"`))
	for _, o := range start {
		o.Start()
	}
}

// A leader with another plan leads on while nobody can tell who is right. It says so, and gives
// its plan up once most voters are there. Then nothing says any more that it is open.
func TestPlansOfWhichNoneIsThatOfMost(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		n := c.Leader()
		others := c.Others(n)
		open := func(seenBy *nodetest.Instance) bool {
			return slices.ContainsFunc(seenBy.Status().Damage, func(d api.Damage) bool {
				return d.Node == n.Name && strings.Contains(d.What, "no digest is that of most voters")
			})
		}
		restartWithAnotherPlan(c, n, others[1], []*nodetest.Instance{n, others[0]}, true)
		c.Wait("both say so", 2*time.Minute, func() bool { return open(n) && open(others[0]) })
		if c.Leader() != n {
			t.Error("it gave its plan up, though it may be right")
		}
		others[1].Start()
		c.Wait("it is back and another leads", 2*time.Minute, func() bool {
			leader := others[0].Status().Leader
			return n.Status().Ready && marked(others[0], n, true) && leader != "" && leader != n.Name
		})
		c.WaitEqual(time.Minute)
		markedByAll(c, n)
		c.Wait("nobody says that it is open", time.Minute, func() bool { return !slices.ContainsFunc(c.Nodes, open) })
	})
}

// A mesh of one can't get the plan from others. It says what is damaged and what to do, and does
// nothing by a wrong plan.
func TestDamagedLogOfTheOnlyNode(t *testing.T) {
	nodetest.Virtual(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		n := c.Nodes[0]
		_ = n.Stop()
		n.Rot(false, flipped)
		for range 2 {
			n.Start()
			c.Wait("it says so", time.Minute, func() bool { return marked(n, n, false) })
			s := n.Status()
			if what := s.Damage[0].What; s.Ready || !strings.Contains(what, "hopmesh recover") || !strings.Contains(what, "entry ") {
				t.Errorf("%+v", s)
			}
			if err := n.Stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// Of two nodes one votes. If its log is damaged, there is no leader to give it the plan: it says
// so, and comes back once the other was made the voter.
func TestDamagedLogOfTheOnlyVoter(t *testing.T) {
	nodetest.Virtual(t, 2, func(t *testing.T, c *nodetest.Cluster) {
		n := c.Leader()
		other := c.Others(n)[0]
		c.WaitEqual(time.Minute)
		i := slices.IndexFunc(n.Members(), func(m api.Member) bool { return m.Name == other.Name })
		id := n.Members()[i].ID
		_ = n.Stop()
		n.Rot(false, flipped)
		n.Start()
		c.Wait("both say that it waits", time.Minute, func() bool {
			return !slices.ContainsFunc(c.Nodes, func(o *nodetest.Instance) bool {
				return !slices.ContainsFunc(o.Status().Damage, func(d api.Damage) bool {
					return d.Node == n.Name && strings.Contains(d.What, "no leader answers") && strings.Contains(d.What, "hopmesh recover")
				})
			})
		})
		_ = other.Stop()
		other.Recover([]string{id})
		other.Start()
		c.Wait("it is back", time.Minute, func() bool { return n.Status().Ready })
		c.WaitEqual(time.Minute)
		markedByAll(c, n)
	})
}

// A node that was revoked while it was down says that the others refuse it.
func TestDamagedLogOfARevokedNode(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		n := notLeading(c)
		_ = n.Stop()
		if _, err := c.Leader().API().ForceLeave(t.Context(), api.ForceLeaveRequest{Name: n.Name, Revoke: true}); err != nil {
			t.Fatal(err)
		}
		n.Rot(false, flipped)
		n.Start()
		c.Wait("it says that it is refused", 2*time.Minute, func() bool {
			d := n.Status().Damage
			return len(d) == 1 && strings.Contains(d[0].What, "other nodes refuse this one")
		})
	})
}
