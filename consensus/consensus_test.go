package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

func token(n int) plan.CreateToken {
	now := time.Now()
	return plan.CreateToken{Token: plan.NewToken(fmt.Sprintf("%012d", n), now, time.Second), Now: now}
}

func TestFoundingHappensOnce(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		n := c.found("a")
		first := n.State()
		if first.MeshID != "mesh" || len(first.Members) != 1 || first.Generation == 0 {
			t.Fatalf("founded: %+v", first)
		}
		n.stop()
		n.start(&plan.Genesis{MeshID: "another", First: member("b"), KeyDigest: "x"})
		c.leader()
		if got := n.State(); got.Digest() != first.Digest() {
			t.Fatalf("after a restart: %+v, was %+v", got, first)
		}
		n.stop()
		n.start(nil)
		c.leader()
		if got := n.State(); got.Digest() != first.Digest() {
			t.Fatalf("after a restart without the order to found: %+v, was %+v", got, first)
		}
	})
}

func TestWithoutFoundingNothingHappens(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		n := c.add("a")
		n.start(nil)
		pass(time.Minute)
		if n.Leader() != "" || n.State().MeshID != "" || n.IsLeader() {
			t.Fatalf("%+v", n.State())
		}
		if _, err := n.Apply(t.Context(), token(1)); !errors.Is(err, ErrNotLeader) {
			t.Fatalf("apply: %v", err)
		}
		if err := n.HandOver(t.Context()); err != nil {
			t.Fatalf("handing over nothing: %v", err)
		}
	})
}

func TestGrowthAndTheWayBack(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b")
		pass(10 * time.Second)
		c.waitVoters(0, "a")
		c.grow("c")
		c.waitVoters(10*time.Second, "a", "b", "c")
		c.grow("d", "e")
		c.waitVoters(10*time.Second, "a", "b", "c", "d", "e")
		c.grow("f", "g")
		pass(10 * time.Second)
		c.waitVoterCount(0, 5)
		c.waitEqual(time.Second)
		for _, left := range []int{6, 5, 4, 3, 2, 1} {
			l := c.leader()
			c.apply(plan.SetLeaving{ID: l.id}) // the hardest: whoever leads
			c.wait("the leaver is gone", 30*time.Second, func() bool {
				next := c.leaderIn(c.running())
				_, in := next.State().Members[l.id]
				return next != l && !in && !slices.ContainsFunc(next.Servers(), func(s plan.Server) bool { return s.ID == l.id })
			})
			l.stop()
			want := 1
			if left >= 5 {
				want = 5
			} else if left >= 3 {
				want = 3
			}
			c.waitVoterCount(15*time.Second, want)
			c.waitEqual(time.Second)
		}
	})
}

func TestKilledLeaderIsReplaced(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c")
		c.waitVoterCount(10*time.Second, 3)
		old := c.leader()
		old.kill()
		took := c.wait("a new leader", 5*time.Second, func() bool {
			return slices.ContainsFunc(c.running(), (*node).isLeader)
		})
		t.Logf("a new leader after %s", took)
		c.apply(token(1))
		c.waitVoterCount(0, 3)
		old.start(nil)
		c.leader()
		c.waitEqual(15 * time.Second)
	})
}

func (n *node) isLeader() bool { return n.IsLeader() }

func TestFailedVoterIsReplacedByASpare(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c")
		c.waitVoters(10*time.Second, "a", "b", "c")
		c.grow("d")
		pass(5 * time.Second)
		var failed *node
		for _, n := range c.running() {
			if slices.Contains(n.voters(), n.id) && !n.IsLeader() {
				failed = n
			}
		}
		failed.kill()
		pass(15 * time.Second)
		if v := c.leader().voters(); !slices.Contains(v, failed.id) || len(v) != 3 {
			t.Fatalf("too soon: %s failed 15 s ago, voters are %v", failed.id, v)
		}
		c.wait("the replacement", 10*time.Second, func() bool {
			v := c.leader().voters()
			return len(v) == 3 && !slices.Contains(v, failed.id) && slices.Contains(v, "d")
		})
		failed.start(nil)
		c.waitEqual(15 * time.Second)
		if v := c.leader().voters(); slices.Contains(v, failed.id) {
			t.Fatalf("back from failure it votes again: %v", v)
		}
	})
}

// Gossip on a fresh leader may never have heard of a voter that is down.
func TestVoterThatGossipForgotIsReplaced(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c")
		c.waitVoters(10*time.Second, "a", "b", "c")
		c.grow("d")
		c.wait("d takes part", 5*time.Second, func() bool { return len(c.leader().Servers()) == 4 })
		for _, n := range c.running() {
			if !n.IsLeader() && n.id != "d" {
				n.kill()
				c.mu.Lock()
				delete(c.nodes, n.id)
				c.mu.Unlock()
				break
			}
		}
		c.wait("the replacement", 30*time.Second, func() bool {
			return slices.Contains(c.leader().voters(), "d") && len(c.leader().voters()) == 3
		})
	})
}

func TestPromotionWaitsForWhatVotersMustHold(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		a := c.found("a")
		a.refuse = errors.New("not now")
		c.grow("b", "c")
		pass(10 * time.Second)
		c.waitVoters(0, "a")
		c.mu.Lock()
		a.refuse = nil
		c.mu.Unlock()
		c.waitVoters(3*time.Second, "a", "b", "c")
		c.mu.Lock()
		defer c.mu.Unlock()
		if a.prepared["b"] == 0 || a.prepared["c"] == 0 || a.prepared["a"] != 0 {
			t.Fatalf("prepared: %v", a.prepared)
		}
	})
}

func TestPromotionWaitsForTheLog(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		for i := range 2 * maxLag {
			c.apply(token(i))
		}
		c.add("b").lag = 2 * maxLag
		c.nodes["b"].start(nil)
		c.apply(plan.AddMember{Member: member("b")})
		c.grow("c")
		pass(10 * time.Second)
		c.waitVoters(0, "a")
		b := c.nodes["b"]
		c.mu.Lock()
		b.lag = 0
		c.mu.Unlock()
		c.waitVoters(5*time.Second, "a", "b", "c")
	})
}

func TestPartitionAndHeal(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c")
		c.waitVoterCount(10*time.Second, 3)
		old := c.leader()
		old.isolate(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := old.Apply(ctx, token(1)); !errors.Is(err, ErrUncertain) {
			t.Fatalf("a change without a majority: %v", err)
		}
		if old.IsLeader() || old.Leader() != "" {
			t.Fatalf("cut off, it leads still: %v, %q", old.IsLeader(), old.Leader())
		}
		others := slices.DeleteFunc(c.running(), func(n *node) bool { return n == old })
		fresh := c.leaderIn(others)
		if _, err := fresh.Apply(ctx, token(2)); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		old.isolate(false)
		took := c.wait("the old leader follows", 30*time.Second, func() bool { return old.Leader() == fresh.id })
		c.waitEqual(30 * time.Second)
		t.Logf("followed after %s", took)
		if _, kept := old.State().Tokens[token(1).Token.ID]; kept {
			t.Fatal("the change without a majority was kept")
		}
	})
}

func TestFollowersLearnAtOnce(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c")
		c.waitVoterCount(10*time.Second, 3)
		pass(5 * time.Second)
		s := c.apply(token(1))
		c.wait("all hold the change", commitTimeout/5, func() bool {
			return !slices.ContainsFunc(c.running(), func(n *node) bool { return n.State().Index < s.Index })
		})
	})
}

func TestHandOver(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		a := c.found("a")
		if err := a.HandOver(t.Context()); !errors.Is(err, ErrNoSuccessor) {
			t.Fatalf("alone: %v", err)
		}
		c.grow("b", "c")
		c.waitVoterCount(10*time.Second, 3)
		old := c.leader()
		for _, n := range c.running() {
			if n != old && n.id != "c" {
				n.kill() // Raft alone might choose it
			}
		}
		if got := old.successors(); !slices.Equal(got, []string{"c"}) {
			t.Fatalf("could follow: %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // no time for the dead
		defer cancel()
		if err := old.HandOver(ctx); err != nil {
			t.Fatal(err)
		}
		if next := c.leader(); next == old {
			t.Fatal("it leads still")
		}
	})
}

func TestLaggardGetsASnapshot(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		a := c.found("a")
		for i := range snapshotThreshold + trailingLogs + 100 {
			c.apply(token(i))
			if i%64 == 0 {
				pass(time.Second) // so that tokens expire
			}
		}
		c.wait("a snapshot", 3*snapshotInterval, func() bool {
			first, err := a.stores.Log.FirstIndex()
			return err == nil && first > 1
		})
		c.grow("b")
		c.waitEqual(30 * time.Second)
		if meta, state, err := newestSnapshot(c.nodes["b"].stores.Snapshots); err != nil || meta == nil || state.MeshID != "mesh" {
			t.Fatalf("b caught up without a snapshot: %v, %v", meta, err)
		}
		for _, n := range c.running() {
			n.stop()
			n.start(nil)
		}
		c.leader()
		c.waitEqual(15 * time.Second)
	})
}

func TestUnknownCommandStopsTheNode(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		a := c.found("a")
		before := a.State().Digest()
		if err := a.raft.Apply([]byte{1, 0, 250, '{', '}'}, time.Second).Error(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-a.Failed():
		case <-time.After(time.Second):
			t.Fatal("the node goes on")
		}
		if !errors.Is(a.Err(), plan.ErrUnknownCommand) {
			t.Fatalf("failed with %v", a.Err())
		}
		if _, err := a.Apply(t.Context(), token(1)); !errors.Is(err, plan.ErrUnknownCommand) || a.State().Digest() != before {
			t.Fatalf("a later command: %v", err)
		}
		if err := a.raft.Snapshot().Error(); err == nil {
			t.Fatal("a snapshot hides what was not understood")
		}
	})
}

func TestRefusalsComeBack(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		a := c.found("a")
		if _, err := a.Apply(t.Context(), plan.SetLeaving{ID: "nobody"}); !errors.Is(err, plan.ErrNoMember) {
			t.Fatalf("refused with %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("changed my mind")
		cancel(why)
		if _, err := a.Apply(ctx, plan.SetLeaving{ID: "nobody"}); !errors.Is(err, why) && !errors.Is(err, plan.ErrNoMember) {
			t.Fatalf("cancelled with %v", err)
		}
	})
}

func TestChangedTellsOfEverything(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		a := c.found("a")
		c.grow("b")
		c.waitEqual(5 * time.Second)
		pass(5 * time.Second)
		changed := c.nodes["b"].Changed()
		select {
		case <-changed:
			t.Fatal("a change while nothing happens")
		case <-time.After(10 * time.Second):
		}
		c.apply(token(1))
		<-changed
		pass(5 * time.Second)
		changed = c.nodes["b"].Changed()
		a.kill()
		<-changed
		c.wait("no leader", 5*time.Second, func() bool { return c.nodes["b"].Leader() == "" })
	})
}

func TestCloseWithoutAMajority(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c")
		c.waitVoterCount(10*time.Second, 3)
		l := c.leader()
		for _, n := range c.running() {
			if n != l {
				n.kill()
			}
		}
		done := make(chan error, 1)
		go func() {
			_, err := l.Apply(context.Background(), token(1))
			done <- err
		}()
		pass(100 * time.Millisecond)
		begin := time.Now()
		l.stop()
		if took := time.Since(begin); took > drainTimeout {
			t.Fatalf("it took %s to stop", took)
		}
		if err := <-done; !errors.Is(err, ErrUncertain) && !errors.Is(err, ErrClosed) {
			t.Fatalf("the change under way: %v", err)
		}
		if _, err := l.propose(t.Context(), token(2)); !errors.Is(err, ErrClosed) {
			t.Fatalf("a change after the end: %v", err)
		}
	})
}

func TestStopDuringADial(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c")
		c.waitVoterCount(10*time.Second, 3)
		l := c.leader()
		for _, n := range c.running() {
			if n != l {
				n.isolate(true)
			}
		}
		for range 10 { // at some moment of an election among the dead
			pass(730 * time.Millisecond)
			begin := time.Now()
			l.stop()
			if took := time.Since(begin); took > 100*time.Millisecond {
				t.Fatalf("it took %s to stop", took)
			}
			l.start(nil)
		}
	})
}

// A leader's work of one term never overlaps that of the next, see letGo.
func TestFlappingLeadership(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c")
		c.waitVoterCount(10*time.Second, 3)
		c.mu.Lock()
		for _, n := range c.nodes {
			n.dawdle = 3 * time.Second
		}
		c.mu.Unlock()
		for range 20 {
			l := c.leaderIn(c.running())
			if err := l.HandOver(t.Context()); err != nil {
				t.Logf("hand over: %v", err)
			}
		}
		c.leader()
		c.apply(token(1))
		c.waitEqual(5 * time.Second)
		c.waitVoterCount(0, 3)
	})
}

func TestCloseLeavesNoStreamOpen(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c")
		c.waitVoterCount(10*time.Second, 3)
		l := c.leader()
		order := slices.DeleteFunc(c.running(), func(n *node) bool { return n == l })
		for _, n := range append(order, l) { // those that accept streams first
			port := c.net.ports[n.id]
			n.stop()
			c.net.mu.Lock()
			for conn, peer := range port.conns {
				if err := conn.SetDeadline(time.Time{}); !errors.Is(err, io.ErrClosedPipe) {
					t.Errorf("a stream between %s and %s is still open (%v)", n.id, peer, err)
				}
			}
			c.net.mu.Unlock()
		}
	})
}

func TestOpenReleasesWhatItCannotUse(t *testing.T) {
	closed := false
	stores := MemoryStores()
	stores.Close = func() error { closed = true; return nil }
	stores.Stable = brokenStable{}
	p := newNetwork().listen("a")
	n := &node{}
	_, err := Open(Config{ID: "a", Layer: p, Stores: stores, Health: n.health, Probe: n.probe, Log: discard()})
	if !errors.Is(err, errBroken) && err == nil {
		t.Fatalf("opened: %v", err)
	}
	if !closed {
		t.Error("the stores are still open")
	}
	select {
	case <-p.closed:
	default:
		t.Error("the layer is still open")
	}
	if _, err := Open(Config{ID: "a"}); err == nil {
		t.Error("half a configuration is enough")
	}
}

var errBroken = errors.New("broken")

type brokenStable struct{ raft.StableStore }

func (brokenStable) GetUint64([]byte) (uint64, error) { return 0, errBroken }
