package consensus

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// The leader proposes no command that a member does not know: that one would have to stop.
func TestCommandsThatNotAllKnowAreNotProposed(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.apply(plan.AddMember{Member: plan.Member{ID: "b", Name: "beta", PublicKey: "kb", Knows: plan.KindSetComputing - 1}})
		l, unknown := c.leader(), plan.SetComputing{ID: "j1", From: 1, To: 2}
		before := l.raft.LastIndex()
		if _, err := l.Apply(t.Context(), unknown); !errors.Is(err, plan.ErrNotAllKnow) {
			t.Errorf("it ended with %v", err)
		}
		if now := l.raft.LastIndex(); now != before {
			t.Errorf("the log went from %d to %d", before, now)
		}
		for _, id := range []string{"a", "b"} {
			c.apply(plan.UpdateMember{ID: id, Knows: plan.Newest})
		}
		if _, err := l.Apply(t.Context(), unknown); !errors.Is(err, plan.ErrNoJob) {
			t.Errorf("once all know it: %v", err)
		}
	})
}

// So a node that does not know a command and one that brings it can't come in together, whichever is
// first in the log.
func TestAdmissionsUnderWayAreWaitedFor(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c")
		c.waitVoters(time.Minute, "a", "b", "c")
		for _, id := range []string{"a", "b", "c"} {
			c.apply(plan.UpdateMember{ID: id, Knows: plan.Newest})
		}
		l, added := c.leader(), make(chan error, 1)
		cut := func(all bool) {
			for _, n := range c.running() {
				c.net.sever(l.id, n.id, all && n != l)
			}
		}
		cut(true)
		go func() {
			_, err := l.Apply(t.Context(), plan.AddMember{Member: plan.Member{ID: "d", Name: "delta", PublicKey: "kd", Knows: plan.KindSetComputing - 1}})
			added <- err
		}()
		synctest.Wait()
		if _, in := l.State().Members["d"]; in {
			t.Fatal("it has been added already")
		}
		cut(false)
		if _, err := l.Apply(t.Context(), plan.SetComputing{ID: "j1", From: 1, To: 2}); !errors.Is(err, plan.ErrNotAllKnow) {
			t.Errorf("it ended with %v", err)
		}
		if err := <-added; err != nil {
			t.Error(err)
		}
	})
}
