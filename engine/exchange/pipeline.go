package exchange

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// The lanes of pipe. Its steps are epochs, and the Index selects the offer within an
// epoch.
const (
	LaneBoundary uint8 = 32 + iota // rows between stages, and their gradients
	LaneMirror                     // rows between the ways of a stage, and their gradients
	LanePiece                      // columns of a node's gradient, within a stage
	LaneTotal                      // columns of the sum
	LaneEarly                      // rows of which histories are made, before an epoch
	LaneSettled                    // a stage's weights, for all others
	LaneDigest                     // progress of the digest of all weights
)

// A Folder adds up rows as the tree does, in memory that is reused.
type Folder[T Number] struct{ pieces []piece }

// Fold leaves the sum of rows in the first of them: each is the sum of a span that
// begins at a leaf. They ascend.
func (f *Folder[T]) Fold(leaves []int, rows [][]T) {
	f.pieces = f.pieces[:0]
	for i, row := range rows {
		f.pieces = append(f.pieces, piece{first: leaves[i], row: raw(row)})
	}
	fold[T](f.pieces)
}

// TakePart is Take of some bytes of an offer of one part: as many as fit in to, from
// first on.
func (x *Exchange) TakePart(ctx context.Context, node int, k peer.Kind, t Tag, first int, to []byte, tally *peer.Tally) error {
	var columns [columnsSize]byte
	putColumns(columns[:], first, first+len(to))
	q := peer.Query{Service: peer.Offers, Kind: k, Epoch: t.Epoch, Step: t.Step, Part: t.part(), Body: columns[:], Limit: len(to), Tally: tally}
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
