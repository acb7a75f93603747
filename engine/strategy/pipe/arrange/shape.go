package arrange

import (
	"fmt"
	"slices"
	"sort"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// A Shape divides the vertices of a graph into ways, ways into chunks, and chunks into
// shards, each a run of the next. It is the same on all nodes.
type Shape struct {
	Firsts    []uint32 // of each shard, then the number of vertices
	chunks    []int    // the first shard of each, then the number of shards
	ways      []int    // the first chunk of each, then the number of chunks
	positions int      // chunks of the longest way
}

// NewShape divides shards, given their first vertices and then the number of vertices.
// Chunks cost about the same as far as whole shards allow: costs are those of each shard;
// nil: all the same. The numbers of chunks of ways differ by one at most.
func NewShape(firsts []uint32, costs []uint64, ways, chunks int) (*Shape, error) {
	shards := len(firsts) - 1
	switch {
	case ways < 1 || chunks < ways:
		return nil, fmt.Errorf("%d chunks are too few for %d ways: each way needs one", chunks, ways)
	case chunks > shards:
		return nil, fmt.Errorf("%d shards are too few for %d chunks: each chunk needs one", shards, chunks)
	}
	if costs == nil {
		costs = slices.Repeat([]uint64{1}, shards)
	}
	s := &Shape{Firsts: firsts, chunks: divide(costs, chunks), ways: make([]int, ways+1)}
	for w := range ways {
		s.ways[w+1] = chunks * (w + 1) / ways
		s.positions = max(s.positions, s.ways[w+1]-s.ways[w])
	}
	return s, nil
}

// Ways returns the number of ways.
func (s *Shape) Ways() int { return len(s.ways) - 1 }

// Chunks returns the number of chunks of all ways.
func (s *Shape) Chunks() int { return len(s.chunks) - 1 }

// Positions returns the number of chunks of the longest way.
func (s *Shape) Positions() int { return s.positions }

// Shards returns those of the chunk at a position of a way: none, if the way has fewer
// chunks than others.
func (s *Shape) Shards(way, position int) (first, end int) {
	chunk := s.ways[way] + position
	if chunk >= s.ways[way+1] {
		return 0, 0
	}
	return s.chunks[chunk], s.chunks[chunk+1]
}

// Vertices returns those of the chunk at a position of a way.
func (s *Shape) Vertices(way, position int) (first, end uint32) {
	a, b := s.Shards(way, position)
	return s.Firsts[a], s.Firsts[b]
}

// Of returns the vertices and the shards of a way.
func (s *Shape) Of(way int) (first, end uint32, shard, last int) {
	shard, last = s.chunks[s.ways[way]], s.chunks[s.ways[way+1]]
	return s.Firsts[shard], s.Firsts[last], shard, last
}

// WayOf returns the way of a shard.
func (s *Shape) WayOf(shard int) int {
	return sort.Search(s.Ways(), func(w int) bool { return s.chunks[s.ways[w+1]] > shard })
}

// divide divides things with such costs into non-empty runs. It returns where each begins,
// then the number of things. The most expensive run costs as little as possible and, as far
// as that allows, each begins where its share of all costs does. Costs are integers, so
// that all machines compute the same.
func divide(costs []uint64, runs int) []int {
	d := division{runs: runs, things: len(costs), sums: make([]uint64, len(costs)+1)}
	for i, c := range costs {
		d.sums[i+1] = d.sums[i] + c
	}
	low, high := uint64(0), d.sums[d.things] // so much is enough
	for low < high {
		if middle := low + (high-low)/2; d.enough(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return d.even(high)
}

// A division is the state of divide.
type division struct {
	runs, things int
	sums         []uint64 // of the costs before each thing
}

// reach returns how far a run may go that begins at a thing and may cost at most so much.
// It leaves one thing for each run after it.
func (d *division) reach(run, from int, most uint64) int {
	beyond := sort.Search(d.things-from, func(i int) bool { return d.sums[from+i+1]-d.sums[from] > most })
	return min(from+beyond, d.things-(d.runs-1-run))
}

// enough reports whether no run has to cost more.
func (d *division) enough(most uint64) bool {
	at := 0
	for run := range d.runs {
		end := d.reach(run, at, most)
		if end == at {
			return false
		}
		at = end
	}
	return at == d.things
}

// even returns where runs begin that cost no more than that, each as near to its share as
// possible.
func (d *division) even(most uint64) []int {
	// No run may begin before the point from which the remaining runs suffice.
	earliest := make([]int, d.runs+1)
	earliest[d.runs] = d.things
	for run := d.runs - 1; run > 0; run-- {
		end := earliest[run+1]
		begin := sort.Search(end, func(i int) bool { return d.sums[end]-d.sums[i] <= most })
		earliest[run] = max(begin, run)
	}
	firsts := make([]int, d.runs+1)
	for run := 1; run < d.runs; run++ {
		low := max(earliest[run], firsts[run-1]+1)
		high := d.reach(run-1, firsts[run-1], most)
		firsts[run] = d.nearest(low, high, d.sums[d.things]/uint64(d.runs)*uint64(run))
	}
	firsts[d.runs] = d.things
	return firsts
}

// nearest returns the thing, of those from low to high, before which the sum is nearest to
// a number.
func (d *division) nearest(low, high int, to uint64) int {
	at := low + sort.Search(high-low, func(i int) bool { return d.sums[low+i] >= to })
	if at > low && d.sums[at] > to && to-d.sums[at-1] <= d.sums[at]-to {
		at--
	}
	return at
}

// Order returns the order in which an epoch, from 0, takes the positions forward: the same
// in all stages and ways.
func Order(to []int, seed uint64, epoch, positions int, shuffle bool) []int {
	to = to[:0]
	for i := range positions {
		to = append(to, i)
	}
	if !shuffle {
		return to
	}
	draws := keyed.New(seed, keyed.Chunks).With(uint64(epoch)).Draws()
	for i := positions - 1; i > 0; i-- {
		j := draws.Below(uint64(i) + 1)
		to[i], to[j] = to[j], to[i]
	}
	return to
}

// Together reports whether a vertex is computed at a position, in whichever way.
func (s *Shape) Together(position int) func(v uint32) bool {
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

// PositionOf returns a vertex's position in its way.
func (s *Shape) PositionOf(v uint32) int {
	return s.Position(sort.Search(len(s.Firsts)-1, func(i int) bool { return s.Firsts[i+1] > v }))
}

// Position returns a shard's position in its way.
func (s *Shape) Position(shard int) int {
	chunk := sort.Search(s.Chunks(), func(c int) bool { return s.chunks[c+1] > shard })
	return chunk - s.ways[s.WayOf(shard)]
}

// Chunk returns the vertices of a chunk, of all ways.
func (s *Shape) Chunk(chunk int) (first, end uint32) {
	return s.Firsts[s.chunks[chunk]], s.Firsts[s.chunks[chunk+1]]
}
