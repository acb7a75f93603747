package train

import (
	"context"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// plateau notes, after an epoch, whether a super-epoch ends with it: where that is when
// so many epochs have brought validation nothing better. Only an epoch that was judged,
// and found no better, can end one: of the others nobody knows.
func (s *state) plateau(g *strategy.GrappaSettings) {
	if !g.OnPlateau() || !g.Sweeps() || s.Best == nil || s.Last.Eval == nil {
		return
	}
	// The best is this epoch itself where that was better.
	if s.Last.Epoch-max(s.Turned, s.Best.Epoch) >= g.Epochs() {
		s.Super, s.Turned = s.Super+1, s.Last.Epoch
	}
}

// brought is what it took to bring what groups see now, the first time that it is asked
// for: it is told with the first epoch that sees it.
func (n *isolated) brought() (c strategy.Counts) {
	if n != nil {
		c = n.now.sent.Take()
	}
	return c
}

// turnTo has the groups see, before an epoch, what its super-epoch gives them. All nodes
// wait for the one that is last: none can do a step before all have theirs.
func (t *trainer) turnTo(ctx context.Context, epoch int) error {
	n := t.isolated
	if n == nil {
		return nil
	}
	if err := n.next.cramped(); err != nil {
		return fmt.Errorf("bring what the groups of this node will see after epoch %d: %w", epoch, err)
	}
	if super := n.super(t); n.now.super != super {
		start := time.Now()
		scene, err := n.take(ctx, super)
		if err != nil {
			if ctx.Err() != nil {
				return t.stopped(ctx)
			}
			return fmt.Errorf("bring what the groups of this node see from epoch %d on: %w", epoch, err)
		}
		n.enter(scene)
		under := &t.lead().at.Under
		under.Phases.Wait += time.Since(start).Seconds()
		if t.batches.same {
			// The batch of all epochs is of what they saw before.
			if err := t.batches.ahead(ctx, epoch, 1, func(*slot) {}); err != nil {
				return fmt.Errorf("epoch %d: %w", epoch, err)
			}
		}
	}
	if next, ok := n.after(n.now.super); ok && !n.settings.Serial && (n.next == nil || n.next.super != next) {
		n.ahead(ctx, next)
	}
	return nil
}
