package exchange

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// The lanes of pipe. Its steps are epochs, and its Index says what of an epoch is offered.
const (
	LaneBoundary uint8 = 32 + iota // rows between stages, and their gradients
	LaneMirror                     // rows between the ways of a stage, and their gradients
	LanePiece                      // columns of what a node of a stage has made of its gradient
	LaneTotal                      // and of what has been added up
	LaneEarly                      // rows of which histories are made, before an epoch
	LaneSettled                    // what a stage has learnt, for all others
	LaneDigest                     // how far the digest of all weights has come
)

// A Folder adds up rows as the tree does, in memory that is used again.
type Folder[T Number] struct{ pieces []piece }

// Fold leaves the sum of rows in the first of them: each is the sum of a span that begins at
// a leaf. They ascend.
func (f *Folder[T]) Fold(leaves []int, rows [][]T) {
	f.pieces = f.pieces[:0]
	for i, row := range rows {
		f.pieces = append(f.pieces, piece{first: leaves[i], row: raw(row)})
	}
	fold[T](f.pieces)
}

// TakePart is Take of some bytes of an offer of one part: those from first on that to has
// room for.
func (x *Exchange) TakePart(ctx context.Context, node int, k strategy.Kind, t Tag, first int, to []byte, tally *strategy.Tally) error {
	var columns [columnsSize]byte
	putColumns(columns[:], first, first+len(to))
	q := strategy.Query{Service: strategy.Offers, Kind: k, Epoch: t.Epoch, Step: t.Step, Part: t.part(), Body: columns[:], Limit: len(to), Tally: tally}
	answer, err := x.peers.Ask(ctx, node, q, to)
	if err != nil {
		return fmt.Errorf("take a part of the offer of %s: %w", t, err)
	}
	if len(answer) != len(to) {
		return fmt.Errorf("take a part of the offer of %s: node %s offers %d bytes in place of %d", t, x.work.Nodes[node], len(answer), len(to))
	}
	if len(to) > 0 && &answer[0] != &to[0] {
		copy(to, answer)
	}
	return nil
}
