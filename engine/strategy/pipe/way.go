package pipe

import (
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A way is the vertices of one at work in one stage.
type way struct {
	number     int
	first, end uint32   // of its vertices
	places     []int32  // of each of its vertices, its row
	mirrors    []uint32 // of other ways, behind its own among its rows
	grains     []*grain
	// at are those of a position, as they go forward: first those that see no rows of now
	// that other ways have, and so many they are.
	at    [][]*grain
	inner []int
	turn  [][]span // the rows of a position, mirrors, too
	// trunks are those of a position's grains.
	trunks [][]*grain
	// levels are the rows that each layer sees, by the worker's stages; nil where it sees
	// none but its own.
	levels []*level
	// answers are what the last of the worker's stages makes for a history.
	answers tensor.Matrix
}

// A span is some of a way's rows.
type span struct{ first, count int }

// A level is the rows of a way that one layer sees.
type level struct {
	rows tensor.Matrix
	// history is what rows begin an epoch with; none where all rows are of now.
	history tensor.Matrix
	// back is the gradient at the rows: a chunk's is whole when its turn comes.
	back tensor.Matrix
}

// own counts its vertices, and all the mirrors, too.
func (w *way) own() int { return int(w.end - w.first) }
func (w *way) all() int { return w.own() + len(w.mirrors) }

// newWay makes the grains of a way, with trunks where they are wanted.
func newWay(ctx context.Context, number int, t *Task, m *Mirrors, s *sample.Sampler, trunks bool) (*way, error) {
	w := &way{number: number, mirrors: m.of[number], at: make([][]*grain, t.Shape.Positions()), trunks: make([][]*grain, t.Shape.Positions())}
	w.first, w.end, _, _ = t.Shape.Of(number)
	w.places = make([]int32, w.own())
	mirrored := make([]int32, t.Topology.Vertices()) // forgotten when the grains are made
	for i, v := range w.mirrors {
		mirrored[v] = int32(w.own() + i)
	}
	row := func(v uint32) int32 {
		if w.has(v) {
			return w.places[v-w.first]
		}
		return mirrored[v]
	}
	halves := w.halve(t)
	for position := range t.Shape.Positions() {
		together := t.Shape.together(position)
		first, end := t.Shape.Shards(number, position)
		for half := range 2 {
			for shard := first; shard < end; shard++ {
				vertices := halves[shard][half]
				if len(vertices) == 0 {
					continue
				}
				g, err := newGrain(ctx, s, shard, vertices, row, together)
				if err != nil {
					return nil, fmt.Errorf("find the edges of shard %d: %w", shard, err)
				}
				w.at[position] = append(w.at[position], g)
			}
			if half == 0 {
				w.inner = append(w.inner, len(w.at[position]))
			}
		}
		w.grains = append(w.grains, w.at[position]...)
		w.turn = append(w.turn, w.spans(t.Shape, m, position))
		for _, g := range w.at[position][w.inner[position]:] {
			i := slices.IndexFunc(w.at[position][:w.inner[position]], func(other *grain) bool { return other.shard == g.shard })
			if i < 0 || !trunks {
				continue
			}
			inner := w.at[position][i]
			trunk, err := newGrain(ctx, s, g.shard, slices.Concat(inner.vertices, g.vertices), row, together)
			if err != nil {
				return nil, fmt.Errorf("find the edges of shard %d: %w", g.shard, err)
			}
			inner.trunk, g.trunk, g.from = trunk, trunk, len(inner.vertices)
			w.trunks[position] = append(w.trunks[position], trunk)
		}
	}
	return w, nil
}

// spans finds where the rows of a position lie.
func (w *way) spans(s *Shape, m *Mirrors, position int) []span {
	first, end := s.Vertices(w.number, position)
	all := []span{{0, 0}}
	if end > first {
		all[0] = span{int(first - w.first), int(end - first)}
	}
	for other := range s.Ways() {
		if a, b := m.from(w.number, other, position); other != w.number && b > a {
			all = append(all, span{w.own() + a, b - a})
		}
	}
	return all
}

// halve divides the vertices of each shard into those that see no rows of now that other
// ways have and those that do, and has both lie one after the other.
func (w *way) halve(t *Task) map[int][2][]uint32 {
	halves, next := map[int][2][]uint32{}, int32(0)
	for position := range t.Shape.Positions() {
		together := t.Shape.together(position)
		first, end := t.Shape.Shards(w.number, position)
		for shard := first; shard < end; shard++ {
			var of [2][]uint32
			for v := t.Shape.firsts[shard]; v < t.Shape.firsts[shard+1]; v++ {
				half := 0
				sources, _ := t.Topology.Row(int(v))
				for _, u := range sources {
					if !w.has(uint32(u)) && together(uint32(u)) {
						half = 1
						break
					}
				}
				of[half] = append(of[half], v)
			}
			if n := len(of[0]); n < worthwhile(n+len(of[1])) {
				of = [2][]uint32{1: slices.Concat(of[0], of[1])}
			}
			for _, vertices := range of {
				for _, v := range vertices {
					w.places[v-w.first] = next
					next++
				}
			}
			halves[shard] = of
		}
	}
	return halves
}

// worthwhile is how many vertices of a shard must wait for nothing to be a part of their own:
// two parts cost more than one, since they share sources.
func worthwhile(vertices int) int {
	const share = 8
	return vertices / share
}

// has says whether a vertex is one of the way's.
func (w *way) has(v uint32) bool { return v >= w.first && v < w.end }

// together says whether a vertex is computed at a position, in whichever way.
func (s *Shape) together(position int) func(v uint32) bool {
	spans := make([][2]uint32, s.Ways())
	for way := range spans {
		spans[way][0], spans[way][1] = s.Vertices(way, position)
	}
	return func(v uint32) bool {
		for _, span := range spans {
			if v >= span[0] && v < span[1] {
				return true
			}
		}
		return false
	}
}

// rowsOf are a grain's among those of a level.
func (g *grain) rowsOf(m tensor.Matrix) tensor.Matrix { return m.RowRange(g.row, len(g.vertices)) }
