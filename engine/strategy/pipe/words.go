package pipe

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
)

// A Word is what nodes tell each other at the end of an epoch beside their losses.
type Word uint8

// What they say.
const (
	// Unsound: what has been added up of some stage's gradients is not finite.
	Unsound Word = 1 << iota
	// Settle: somebody wants all nodes to have all weights now.
	Settle
	words
)

// said is how long what a node says is.
const said = 8 + 1

// conclude is the sum of the losses of all nodes, and what any of them says.
func (w *Worker) conclude(ctx context.Context, mine Word) (sum float64, all Word, err error) {
	if from, to := w.Own(); to > from && !w.Device.Finite(w.Gradients.View(0, 1, from, to-from)) {
		mine |= Unsound
	}
	if w.Exchange == nil {
		return w.loss, mine, nil
	}
	defer w.since(time.Now())
	binary.LittleEndian.PutUint64(w.said[:], math.Float64bits(w.loss))
	w.said[8] = byte(mine)
	messages, err := w.Exchange.Gather(ctx, exchange.Tag{Epoch: uint32(w.epoch + 1)}, w.said[:], w.tally)
	if err != nil {
		return 0, 0, fmt.Errorf("add up the losses: %w", err)
	}
	for node, m := range messages {
		if len(m) != said || m[8] >= byte(words) {
			return 0, 0, fmt.Errorf("node %s ends an epoch with %d bytes that say nothing: run the same version of hopmesh on all nodes of the job", w.Work.Nodes[node], len(m))
		}
		sum += math.Float64frombits(binary.LittleEndian.Uint64(m))
		all |= Word(m[8])
	}
	return sum, all, nil
}
