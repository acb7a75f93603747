package pipe

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A way is the vertices of one at work in one stage.
type way struct {
	number     int
	first, end uint32   // of its vertices
	mirrors    []uint32 // of other ways, behind its own among its rows
	grains     []*grain // of shards that have vertices
	at         [][]*grain
	// levels are the rows that each layer sees, by the worker's stages; nil where it sees
	// none but its own.
	levels []*level
	// answers are what the last of the worker's stages makes for a history.
	answers tensor.Matrix
}

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

// newWay makes the grains of a way.
func newWay(ctx context.Context, number int, t *Task, m *Mirrors, s *sample.Sampler) (*way, error) {
	w := &way{number: number, mirrors: m.of[number], at: make([][]*grain, t.Shape.Positions())}
	var shard, last int
	w.first, w.end, shard, last = t.Shape.Of(number)
	places := make([]int32, t.Topology.Vertices()) // of the mirrors; forgotten when the grains are made
	for i, v := range w.mirrors {
		places[v] = int32(w.own() + i)
	}
	row := func(v uint32) int32 {
		if v >= w.first && v < w.end {
			return int32(v - w.first)
		}
		return places[v]
	}
	for position := range t.Shape.Positions() {
		spans := make([][2]uint32, t.Shape.Ways())
		for other := range spans {
			spans[other][0], spans[other][1] = t.Shape.Vertices(other, position)
		}
		together := func(v uint32) bool {
			for _, span := range spans {
				if v >= span[0] && v < span[1] {
					return true
				}
			}
			return false
		}
		first, end := t.Shape.Shards(number, position)
		for ; first < end; first++ {
			a, b := t.Shape.firsts[first], t.Shape.firsts[first+1]
			if a == b {
				continue
			}
			g, err := newGrain(ctx, s, first, a, b, row, together)
			if err != nil {
				return nil, fmt.Errorf("find the edges of shard %d: %w", first, err)
			}
			w.grains = append(w.grains, g)
			w.at[position] = append(w.at[position], g)
		}
	}
	if shard == last || len(w.at) == 0 {
		return nil, fmt.Errorf("way %d has no shards", number)
	}
	return w, nil
}

// rowsOf are a grain's among those of a level.
func (g *grain) rowsOf(m tensor.Matrix) tensor.Matrix { return m.RowRange(g.row, len(g.vertices)) }
