package consensus

import (
	"errors"
	"testing"

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
