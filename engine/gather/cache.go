package gather

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// Cache fetches and keeps the rows of so many remote vertices, and returns the memory
// that they take. It selects those that are the sources of the most local edges. The
// source must be ready, and nobody may gather yet. Shards without edges do not count;
// rows cached before are dropped.
func (s *Source) Cache(ctx context.Context, rows int, shards []*graph.Shard, tally *peer.Tally) (bytes uint64, err error) {
	s.Drop()
	if rows <= 0 {
		return 0, nil
	}
	vertices := s.hottest(rows, shards)
	var r Rows
	if err := s.gather(ctx, &r, [][]uint32{vertices}, 0, 0, Options{}, tally); err != nil {
		return 0, fmt.Errorf("bring rows of features that are used often: %w", err)
	}
	s.kept, s.hot = r.Far, newHot(s.store.Vertices(), vertices, r.Places[0])
	return s.kept.Bytes() + s.hot.bytes(), nil
}

// Kept returns the rows that Cache has fetched; nil: none.
func (s *Source) Kept() *features.Far {
	if s.kept.Rows() == 0 {
		return nil
	}
	return &s.kept
}

// window is how many vertices' edges are counted at a time.
const window = 1 << 24

// hottest returns the vertices to cache, ascending: of those that are as hot as the
// coldest of them, the first ones.
func (s *Source) hottest(rows int, shards []*graph.Shard) []uint32 {
	with := map[uint32]int{} // number of edges: number of vertices
	s.count(shards, func(_, edges uint32) { with[edges]++ })
	// Keep all with more edges than least, and left of those with exactly least.
	least, left := uint32(0), rows
	classes := slices.Sorted(maps.Keys(with))
	for i, n := range slices.Backward(classes) {
		if least = n; left <= with[n] || i == 0 {
			break
		}
		left -= with[n]
	}
	var vertices []uint32
	s.count(shards, func(v, n uint32) {
		if n < least {
			return
		}
		if n == least {
			if left == 0 {
				return
			}
			left--
		}
		vertices = append(vertices, v)
	})
	return vertices
}

// count calls see for each remote vertex, ascending, with the number of edges of the
// shards that it is the source of. It goes through the edges once for each window.
func (s *Source) count(shards []*graph.Shard, see func(v, edges uint32)) {
	total := s.store.Vertices()
	counts := make([]uint32, min(total, window))
	for first := uint32(0); first < total; first += uint32(len(counts)) {
		counts = counts[:min(total-first, window)]
		clear(counts)
		for _, shard := range shards {
			for _, source := range shard.Indices {
				if at := uint32(source) - first; at < uint32(len(counts)) {
					counts[at]++
				}
			}
		}
		for i, n := range counts {
			if v := first + uint32(i); !s.store.Has(v) {
				see(v, n)
			}
		}
	}
}
