package consensus

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

func TestRecoveryFromTheLossOfAMajority(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c", "d", "e")
		c.waitVoterCount(15*time.Second, 5)
		before := c.apply(token(1))
		c.waitEqual(5 * time.Second)
		for _, id := range []string{"a", "b", "c"} {
			c.nodes[id].kill()
		}
		pass(time.Minute)
		d, e := c.nodes["d"], c.nodes["e"]
		if d.Leader() != "" || e.Leader() != "" {
			t.Fatal("there is a leader without a majority")
		}
		for _, n := range []*node{d, e} {
			n.stop()
			if err := Recover(n.stores, n.id, []string{"d", "e"}, discard()); err != nil {
				t.Fatal(err)
			}
		}
		d.start(nil)
		e.start(nil)
		l := c.leader()
		if s := l.State(); s.Generation < before.Generation || len(s.Members) != 5 || s.Tokens[token(1).Token.ID].ID == "" {
			t.Fatalf("recovered %+v, lost %+v", s, before)
		}
		c.apply(plan.Advance{Generation: before.Generation + 100})
		// The dead are members still, and come back without a vote of their own.
		for _, id := range []string{"a", "b", "c"} {
			c.nodes[id].start(nil)
		}
		c.leader()
		c.waitEqual(30 * time.Second)
		c.waitVoterCount(30*time.Second, 5)
	})
}

func TestRecoveryIsRefused(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		if err := Recover(MemoryStores(), "a", []string{"a"}, discard()); !errors.Is(err, ErrNoState) {
			t.Errorf("of nothing: %v", err)
		}
		a := c.found("a")
		a.stop()
		before := a.State().Digest()
		if err := Recover(a.stores, "a", []string{"a", "typo"}, discard()); !errors.Is(err, plan.ErrNoMember) {
			t.Errorf("with an unknown voter: %v", err)
		}
		if err := Recover(a.stores, "a", nil, discard()); err == nil {
			t.Error("without voters: no error")
		}
		a.start(nil)
		c.leader()
		if a.State().Digest() != before || !slices.Equal(a.voters(), []string{"a"}) {
			t.Error("what was refused has changed something")
		}
		a.stop()
		last, err := a.stores.Log.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		strange := &raft.Log{Index: last + 1, Term: a.Term(), Type: raft.LogCommand, Data: []byte{1, 0, 250}}
		if err := a.stores.Log.StoreLog(strange); err != nil {
			t.Fatal(err)
		}
		if err := Recover(a.stores, "a", []string{"a"}, discard()); !errors.Is(err, plan.ErrUnknownCommand) {
			t.Errorf("by a version that is too old: %v", err)
		}
	})
}
