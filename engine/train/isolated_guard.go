package train

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A guard is the way to the other nodes of a run whose groups train in isolation: while
// they do, it carries nothing but gradients, what nodes must say to each other, and the
// shards that are brought for later.
type guard struct {
	strategy.Peers
	closed atomic.Bool
}

// Ask implements strategy.Peers.
func (g *guard) Ask(ctx context.Context, node int, q strategy.Query, buf []byte) ([]byte, error) {
	if g.closed.Load() {
		switch q.Kind {
		case strategy.Gradient, strategy.Control, strategy.Shard:
		default:
			return nil, fmt.Errorf("%w: groups train in isolation, and %s bytes were asked for in an epoch", strategy.ErrRefused, q.Kind)
		}
	}
	return g.Peers.Ask(ctx, node, q, buf)
}

// isolate closes the way, if groups train in isolation. What it returns opens it.
func (t *trainer) isolate() (open func()) {
	if t.shared == nil || t.shared.guard == nil {
		return func() {}
	}
	t.shared.guard.closed.Store(true)
	return func() { t.shared.guard.closed.Store(false) }
}
