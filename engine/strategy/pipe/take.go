package pipe

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// windowBytes is how much is taken at once, so that no answer is larger than what nodes
// make for each other, nor takes longer than they wait.
var windowBytes = 32 << 20

// take takes the activations that a node offers under a tag.
func (w *Worker) take(ctx context.Context, node int, t exchange.Tag, to []byte) error {
	if len(to) <= windowBytes {
		return w.Exchange.Take(ctx, node, strategy.Activation, t, to, w.tally)
	}
	for first := 0; first < len(to); first += windowBytes {
		end := min(first+windowBytes, len(to))
		if err := w.Exchange.TakePart(ctx, node, strategy.Activation, t, first, to[first:end:end], w.tally); err != nil {
			return err
		}
	}
	return nil
}
