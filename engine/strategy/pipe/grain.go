package pipe

import (
	"cmp"
	"context"
	"slices"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A grain is one shard at work in one stage: it is computed by itself, and its gradient
// is a leaf of the sum.
type grain struct {
	number   int // among those of the worker
	shard    int
	first    uint32 // of its vertices
	vertices []uint32
	row      int // of its first vertex in the way's rows
	batch    sample.Batch
	block    *sample.Block
	// rows are where the block's sources lie in the way's rows: its own first, then those
	// that are computed with it, then those that are not: active counts the former two.
	rows    []int32
	active  int
	labels  []int32
	learnt  bool // some of them are
	seen    []tensor.Matrix
	input   tensor.Matrix // rows that came from the stage before
	carried tensor.Matrix
	sum     []byte // its gradient, once it is known
	late    late

	place    int // of its pass
	pass     *nn.Pass
	x, dy    tensor.Matrix
	carry    tensor.Matrix
	dcarry   tensor.Matrix
	entering tensor.Matrix // what Enter made
}

// newGrain makes one with its block: together says of a vertex whether it is computed at
// the same position, and row where it lies.
func newGrain(ctx context.Context, s *sample.Sampler, shard int, first, end uint32, row func(v uint32) int32, together func(v uint32) bool) (*grain, error) {
	g := &grain{shard: shard, first: first}
	for v := first; v < end; v++ {
		g.vertices = append(g.vertices, v)
	}
	g.row = int(row(first))
	if err := s.Sample(ctx, &g.batch, 0, 0, g.vertices); err != nil {
		return nil, err
	}
	g.block = &g.batch.Blocks[0]
	g.arrange(row, together)
	g.block.Transpose()
	return g, nil
}

// arrange orders the block's sources.
func (g *grain) arrange(row func(v uint32) int32, together func(v uint32) bool) {
	b, own := g.block, len(g.vertices)
	order := make([]int32, b.Cols)
	for i := range order {
		order[i] = int32(i)
	}
	late := func(i int32) int {
		if together(b.Vertices[i]) {
			return 0
		}
		return 1
	}
	slices.SortFunc(order[own:], func(x, y int32) int {
		if c := cmp.Compare(late(x), late(y)); c != 0 {
			return c
		}
		return cmp.Compare(b.Vertices[x], b.Vertices[y])
	})
	place, vertices := make([]int32, b.Cols), make([]uint32, b.Cols)
	g.active = own
	for to, from := range order {
		place[from], vertices[to] = int32(to), b.Vertices[from]
		g.rows = append(g.rows, row(vertices[to]))
		if to >= own && late(from) == 0 {
			g.active++
		}
	}
	for i, source := range b.Indices {
		b.Indices[i] = place[source]
	}
	b.Vertices = vertices
}
