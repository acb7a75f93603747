package pipe

import (
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/blocks"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/census"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/shelf"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A way is the vertices of one way at work in one stage.
type way struct {
	number     int
	first, end uint32   // of its vertices
	places     []int32  // of each of its vertices: its row
	mirrors    []uint32 // vertices of other ways, whose rows follow its own
	grains     []*grain
	// at is the grains of each position, in the order in which they go forward. The first
	// inner of them read no current rows of other ways.
	at    [][]*grain
	inner []int
	turn  [][]span // the rows of a position, mirrors included
	// trunks are those of each position's grains.
	trunks [][]*grain
	// levels are the rows that each layer reads, by the worker's stages; nil for layers
	// that read no other vertices.
	levels []*level
}

// A span is a range of a way's rows.
type span struct{ first, count int }

// A level is the rows of a way that one layer reads.
type level struct {
	rows tensor.Matrix
	// past reports whether an epoch begins with a history, which is at a place among those of
	// the worker. Otherwise all rows are current.
	past bool
	at   int
	// back is the gradient at the rows. That of a chunk is complete when its turn comes.
	back tensor.Matrix
}

// own counts the way's vertices, and all includes mirrors.
func (w *way) own() int { return int(w.end - w.first) }
func (w *way) all() int { return w.own() + len(w.mirrors) }

// newWay makes the grains of a way, with trunks and labels if they are wanted, and finds its
// mirrors. Edges are read one shard after the other, and the blocks are put onto a shelf.
func newWay(ctx context.Context, number int, t *Task, m *arrange.Mirrors, s *blocks.Maker, trunks, labels bool) (*way, error) {
	w := &way{number: number, at: make([][]*grain, t.Shape.Positions()), trunks: make([][]*grain, t.Shape.Positions())}
	w.first, w.end, _, _ = t.Shape.Of(number)
	w.places = make([]int32, w.own())
	if err := s.Drawing(); err != nil {
		return nil, err
	}
	next := int32(0)
	for position := range t.Shape.Positions() {
		var halves [2][]*grain
		first, end := t.Shape.Shards(number, position)
		for shard := first; shard < end; shard++ {
			if t.Shape.Firsts[shard] == t.Shape.Firsts[shard+1] {
				continue
			}
			if err := s.Bring(ctx, shard); err != nil {
				return nil, fmt.Errorf("find the edges of shard %d: %w", shard, err)
			}
			var parts [2]*grain
			var err error
			for half, vertices := range census.Halve(s.Here, t.Shape, number, position, shard) {
				if len(vertices) == 0 {
					continue
				}
				if parts[half], err = newGrain(ctx, s, shard, vertices, int(next)); err != nil {
					return nil, err
				}
				if labels {
					parts[half].label(t)
				}
				for _, v := range vertices {
					w.places[v-w.first] = next
					next++
				}
				halves[half] = append(halves[half], parts[half])
			}
			if inner, g := parts[0], parts[1]; trunks && inner != nil && g != nil {
				trunk, err := newGrain(ctx, s, shard, slices.Concat(inner.vertices, g.vertices), inner.row)
				if err != nil {
					return nil, err
				}
				inner.trunk, g.trunk, g.from = trunk, trunk, len(inner.vertices)
				w.trunks[position] = append(w.trunks[position], trunk)
			}
		}
		w.at[position] = slices.Concat(halves[0], halves[1])
		w.inner = append(w.inner, len(halves[0]))
		w.grains = append(w.grains, w.at[position]...)
	}
	if err := s.Drawn(); err != nil {
		return nil, err
	}
	return w, w.mirror(t, m, s)
}

// mirror finds the way's mirrors, and where grains have the rows that they read.
func (w *way) mirror(t *Task, m *arrange.Mirrors, s *blocks.Maker) error {
	set, vertices := census.NewSet(t.Topology.Vertices()), t.Topology.Vertices()
	for _, g := range w.grains {
		for _, v := range s.Sources(&g.at) {
			if !w.has(v) {
				set.Add(v)
			}
		}
	}
	w.mirrors = set.All(nil)
	m.Of[w.number] = w.mirrors
	rows := make([]int32, len(w.mirrors))
	for i := range rows {
		rows[i] = int32(w.own() + i)
	}
	at := dataset.NewIndex(w.mirrors, rows, vertices)
	row := func(v uint32) int32 {
		if w.has(v) {
			return w.places[v-w.first]
		}
		return at.Find(v)
	}
	for position := range t.Shape.Positions() {
		together := t.Shape.Together(position)
		for _, g := range slices.Concat(w.at[position], w.trunks[position]) {
			if err := s.Arrange(&g.at, row, together); err != nil {
				return err
			}
		}
		w.turn = append(w.turn, w.spans(t.Shape, m, position))
	}
	return nil
}

// spans returns the ranges of the rows of a position.
func (w *way) spans(s *arrange.Shape, m *arrange.Mirrors, position int) []span {
	first, end := s.Vertices(w.number, position)
	all := []span{{0, 0}}
	if end > first {
		all[0] = span{int(first - w.first), int(end - first)}
	}
	for other := range s.Ways() {
		if a, b := m.From(w.number, other, position); other != w.number && b > a {
			all = append(all, span{w.own() + a, b - a})
		}
	}
	return all
}

// has reports whether a vertex is one of the way's.
func (w *way) has(v uint32) bool { return v >= w.first && v < w.end }

// rowsOf returns a grain's rows among those of a level.
func (g *grain) rowsOf(m tensor.Matrix) tensor.Matrix { return m.RowRange(g.row, len(g.vertices)) }

// A grain is the vertices of one shard that are computed at once in one stage: those that
// read current rows of other ways, or those that need not wait for any.
type grain struct {
	number   int // among those of the worker
	shard    int
	vertices []uint32
	row      int       // of its first vertex among the way's rows
	at       blocks.At // where the block is
	block    *sample.Block
	// rows are the block's sources among the way's rows: its own, then those computed at
	// the same position, then all others. active counts the first two kinds.
	rows   []int32
	active int
	labels []int32 // nil: nothing is learnt of it
	leaf   *leaf
	// trunk is the whole shard, where a first stage reads features along edges: it computes
	// the rows of the shard's grains at once. nil: there is none.
	trunk *grain
	from  int
	gives []*piece // that other ways mirror, and are complete when this grain is done
	late  late
	activations
}

// activations are what a grain computes in an epoch.
type activations struct {
	input, carried tensor.Matrix // rows that came from the stage before
	place          int           // of its pass
	pass           *nn.Pass
	x, dy          tensor.Matrix
	carry, dcarry  tensor.Matrix
	entering       tensor.Matrix // what Enter made
}

// A leaf is the gradient of a shard, to which its grains add.
type leaf struct {
	shard int
	slot  int    // among the worker's rooms, while its position goes backward
	sum   []byte // when it is known
}

// newGrain makes one of a shard whose edges are here, and draws its block. Where its sources
// have their rows is yet to be found.
func newGrain(ctx context.Context, m *blocks.Maker, shard int, vertices []uint32, row int) (g *grain, err error) {
	g = &grain{shard: shard, vertices: vertices, row: row}
	if g.at, err = m.Draw(ctx, vertices); err != nil {
		return nil, fmt.Errorf("find the edges of shard %d: %w", shard, err)
	}
	return g, nil
}

// label sets the labels of its vertices.
func (g *grain) label(t *Task) {
	first, end := t.Shape.Firsts[g.shard], t.Shape.Firsts[g.shard+1]
	all := make([]int32, end-first)
	t.Labels(all, first)
	for _, v := range g.vertices {
		g.labels = append(g.labels, all[v-first])
	}
	if !slices.ContainsFunc(g.labels, func(l int32) bool { return l >= 0 }) {
		g.labels = nil
	}
}

// get has the grain read its block where it stays.
func (g *grain) get(s *shelf.Shelf) {
	g.block, g.rows, g.active = g.at.Get(s)
}
