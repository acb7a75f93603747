package pipe

import (
	"fmt"
	"slices"
	"sort"
)

// A Shape is how the vertices of a graph are divided: into ways, which are of chunks,
// which are of shards, each a run of the next. It is the same on all nodes.
type Shape struct {
	firsts    []uint32 // of each shard, then how many vertices there are
	chunks    []int    // the first shard of each, then how many there are
	ways      []int    // the first chunk of each, then how many there are
	positions int      // chunks of the way that has most
}

// NewShape divides shards, of which these are the first vertices and then how many
// vertices there are. Chunks cost about as much as each other, as far as whole shards
// allow: costs are those of each shard; nil: all the same. Ways have as many chunks as each
// other, or one more.
func NewShape(firsts []uint32, costs []uint64, ways, chunks int) (*Shape, error) {
	shards := len(firsts) - 1
	switch {
	case ways < 1 || chunks < ways:
		return nil, fmt.Errorf("%d chunks can't be %d ways: each way has one at least", chunks, ways)
	case chunks > shards:
		return nil, fmt.Errorf("%d shards can't be %d chunks: a chunk is one shard or more", shards, chunks)
	}
	if costs == nil {
		costs = slices.Repeat([]uint64{1}, shards)
	}
	s := &Shape{firsts: firsts, chunks: divide(costs, chunks), ways: make([]int, ways+1)}
	for w := range ways {
		s.ways[w+1] = chunks * (w + 1) / ways
		s.positions = max(s.positions, s.ways[w+1]-s.ways[w])
	}
	return s, nil
}

// Ways counts them, Chunks those of all ways, and Positions those of the way that has
// most.
func (s *Shape) Ways() int { return len(s.ways) - 1 }

// Chunks is as Ways.
func (s *Shape) Chunks() int { return len(s.chunks) - 1 }

// Positions is as Ways.
func (s *Shape) Positions() int { return s.positions }

// Shards are those of the chunk at a position of a way: none, where the way has fewer
// chunks than others.
func (s *Shape) Shards(way, position int) (first, end int) {
	chunk := s.ways[way] + position
	if chunk >= s.ways[way+1] {
		return 0, 0
	}
	return s.chunks[chunk], s.chunks[chunk+1]
}

// Vertices are those of the chunk at a position of a way.
func (s *Shape) Vertices(way, position int) (first, end uint32) {
	a, b := s.Shards(way, position)
	return s.firsts[a], s.firsts[b]
}

// Of is the vertices of a way, and its shards.
func (s *Shape) Of(way int) (first, end uint32, shard, last int) {
	shard, last = s.chunks[s.ways[way]], s.chunks[s.ways[way+1]]
	return s.firsts[shard], s.firsts[last], shard, last
}

// WayOf is the way of a shard.
func (s *Shape) WayOf(shard int) int {
	return sort.Search(s.Ways(), func(w int) bool { return s.chunks[s.ways[w+1]] > shard })
}
