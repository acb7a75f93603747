package pipe

import (
	"cmp"
	"context"
	"slices"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A grain is the vertices of one shard that are computed at once, in one stage: those that
// see rows of now that other ways have, or those that do not and need not wait for any.
type grain struct {
	number   int // among those of the worker
	shard    int
	vertices []uint32
	row      int // of its first vertex in the way's rows
	batch    sample.Batch
	block    *sample.Block
	// rows are where the block's sources lie in the way's rows: its own first, then those
	// that are computed with it, then those that are not: active counts the former two.
	rows    []int32
	active  int
	labels  []int32
	learnt  bool          // some of them are
	input   tensor.Matrix // rows that came from the stage before
	carried tensor.Matrix
	leaf    *leaf
	// trunk is all of the shard, from which the grain is a part of the rows, where a first
	// stage reads features along edges: what several rows read is worked on once. nil: there
	// is none.
	trunk *grain
	from  int
	gives []*piece // that other ways mirror, and are whole when this grain is done
	late  late

	place    int // of its pass
	pass     *nn.Pass
	x, dy    tensor.Matrix
	carry    tensor.Matrix
	dcarry   tensor.Matrix
	entering tensor.Matrix // what Enter made
}

// A leaf is the gradient of a shard, to which its grains add.
type leaf struct {
	shard int
	slot  int    // among the worker's rooms, while its position goes backward
	sum   []byte // once it is known
}

// newGrain makes one with its block: together says of a vertex whether it is computed at
// the same position, and row where it lies.
func newGrain(ctx context.Context, s *sample.Sampler, shard int, vertices []uint32, row func(v uint32) int32, together func(v uint32) bool) (*grain, error) {
	g := &grain{shard: shard, vertices: vertices, row: int(row(vertices[0]))}
	if err := s.Sample(ctx, &g.batch, 0, 0, g.vertices); err != nil {
		return nil, err
	}
	g.block = &g.batch.Blocks[0]
	g.arrange(row, together)
	g.block.Transpose()
	return g, nil
}

// label finds what is learnt of its vertices.
func (g *grain) label(t *Task) {
	first, end := t.Shape.firsts[g.shard], t.Shape.firsts[g.shard+1]
	all := make([]int32, end-first)
	t.Labels(all, first)
	for _, v := range g.vertices {
		g.labels = append(g.labels, all[v-first])
	}
	g.learnt = slices.ContainsFunc(g.labels, func(l int32) bool { return l >= 0 })
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
