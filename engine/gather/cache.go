package gather

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
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
	s.kept, s.hot = features.Far{}, hot{}
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

// hottest returns the vertices to cache, ascending: of those that are as hot as the
// coldest of them, the first ones.
func (s *Source) hottest(rows int, shards []*graph.Shard) []uint32 {
	edges := make([]uint32, s.store.Vertices())
	for _, shard := range shards {
		for _, source := range shard.Indices {
			edges[source]++
		}
	}
	with := map[uint32]int{} // number of edges: number of vertices
	for v, n := range edges {
		if !s.store.Has(uint32(v)) {
			with[n]++
		}
	}
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
	for v, n := range edges {
		if n < least || s.store.Has(uint32(v)) {
			continue
		}
		if n == least {
			if left == 0 {
				continue
			}
			left--
		}
		vertices = append(vertices, uint32(v))
	}
	return vertices
}

// hot finds the rows that are cached. The zero hot has none.
type hot struct {
	is     []uint64 // a bit for each vertex of the graph
	before []uint32 // of each word of is: how many bits are set before it
	places []uint32 // of the cached vertices
}

func newHot(total uint32, vertices, places []uint32) hot {
	words := (uint64(total) + 63) / 64
	h := hot{make([]uint64, words), make([]uint32, words), places}
	for _, v := range vertices {
		h.is[v/64] |= 1 << (v % 64)
	}
	n := 0
	for i, word := range h.is {
		h.before[i] = uint32(n)
		n += bits.OnesCount64(word)
	}
	return h
}

// place returns the place of a vertex's row, if it is cached.
func (h *hot) place(v uint32) (uint32, bool) {
	if h.is == nil {
		return 0, false
	}
	word, bit := h.is[v/64], uint64(1)<<(v%64)
	if word&bit == 0 {
		return 0, false
	}
	return h.places[h.before[v/64]+uint32(bits.OnesCount64(word&(bit-1)))], true
}

func (h *hot) bytes() uint64 {
	return 8*uint64(len(h.is)) + 4*uint64(len(h.before)+len(h.places))
}
