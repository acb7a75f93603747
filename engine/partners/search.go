package partners

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/workers"
)

// A Partner is a row, and the logit of the edge that leads to it.
type Partner struct {
	Row   uint32
	Score float32
}

// compare puts the better partner first: the one with the larger score or, of equals, the one
// whose row comes first.
func compare(a, b Partner) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Row, b.Row))
}

// A Graph says which rows are joined.
type Graph struct {
	Row    []uint32 // of each vertex
	Vertex []uint32 // of each row
	// Sources returns the vertices from which edges lead to a vertex.
	Sources func(vertex uint32) []int32
	// Directed means that a vertex is joined to those alone to which its edges lead.
	Directed bool
}

// Options configure a Search.
type Options struct {
	Rows   Rows
	Blocks link.Blocks
	// Relation is that of all pairs, where the decoder knows some.
	Relation int
	Most     int    // partners of a row
	Graph    *Graph // whose neighbours are no partners; nil: all rows but the own one are
	// Only says which rows may be partners; nil: all.
	Only   func(row uint32) bool
	Memory uint64 // that may be used, of which Least is taken in any case; 0: no bound
	// Threads look for the best scores; 0: one.
	Threads int
}

// How many rows a block has at most and, where memory is short, at least.
const (
	mostSources, fewestSources = 4096, 16
	mostTargets, fewestTargets = 1024, 128
)

// A Search finds the best partners of some rows at a time among all rows: it is exact. It
// allocates nothing once it is made. It is not safe for concurrent use.
type Search struct {
	Options
	pool *workers.Pool
	most [2]int // sources and targets of a block

	a, b, scores []float32
	heaps        []Partner // of each source: Most places
	counts       []int     // of each source: partners so far
	asked        []uint32  // the rows whose partners are sought
	sorted       []uint32  // the same in ascending order
	places       []int32   // of sorted, in asked
	first        int       // of the targets under way
}

// NewSearch makes a search. Close ends it.
func NewSearch(o Options) *Search {
	sources, targets := o.block()
	s := &Search{Options: o, pool: workers.New(max(1, o.Threads)), most: [2]int{sources, targets}}
	s.a, s.b = make([]float32, sources*o.Rows.Columns), make([]float32, targets*o.Rows.Columns)
	s.scores = make([]float32, sources*targets)
	s.heaps, s.counts = make([]Partner, sources*s.Most), make([]int, sources)
	s.sorted, s.places = make([]uint32, 0, sources), make([]int32, 0, sources)
	return s
}

// Close ends the search.
func (s *Search) Close() { s.pool.Close() }

// Least is the memory that a search needs.
func (o *Options) Least() uint64 {
	return o.takes(min(fewestSources, o.Rows.Count), min(fewestTargets, o.Rows.Count))
}

// takes returns what blocks take, with what a product keeps of the targets.
func (o *Options) takes(sources, targets int) uint64 {
	s, t, columns := uint64(sources), uint64(targets), uint64(o.Rows.Columns)
	const partner, others = 8, 8 + 4 + 4 + 4
	return 4*(s*columns+2*t*columns+s*t) + s*(partner*uint64(o.Most)+others)
}

// block chooses how many sources and targets a block has. Each block of sources reads all
// targets, so sources give way last.
func (o *Options) block() (sources, targets int) {
	sources, targets = max(1, min(mostSources, o.Rows.Count)), max(1, min(mostTargets, o.Rows.Count))
	for o.Memory > 0 && o.takes(sources, targets) > o.Memory {
		switch {
		case targets > fewestTargets:
			targets = max(fewestTargets, targets/2)
		case sources > fewestSources:
			sources = max(fewestSources, sources/2)
		default:
			return sources, targets
		}
	}
	return sources, targets
}

// AtOnce is how many rows Find takes at most.
func (s *Search) AtOnce() int { return s.most[0] }

// Find finds the best partners of some rows, up to AtOnce.
func (s *Search) Find(ctx context.Context, rows []uint32) error {
	s.begin(rows)
	columns := s.Rows.Columns
	a := tensor.OverF32(len(rows), columns, s.a[:len(rows)*columns])
	if err := s.Rows.gather(s.a[:len(rows)*columns], rows); err != nil {
		return err
	}
	s.Blocks.Begin(a, s.Relation)
	for s.first = 0; s.first < s.Rows.Count; s.first += s.most[1] {
		n := s.targets()
		if err := s.Rows.read(s.b[:n*columns], s.first); err != nil {
			return err
		}
		s.Blocks.Score(ctx, tensor.OverF32(len(rows), n, s.scores[:len(rows)*n]), a, tensor.OverF32(n, columns, s.b[:n*columns]))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.exclude()
		s.pool.Run((len(rows)+rowsOfChunk-1)/rowsOfChunk, s)
	}
	for i := range rows {
		slices.SortFunc(s.Best(i), compare)
	}
	return nil
}

// begin forgets what was found before.
func (s *Search) begin(rows []uint32) {
	s.asked, s.places = rows, s.places[:0]
	for i := range rows {
		s.counts[i] = 0
		s.places = append(s.places, int32(i))
	}
	slices.SortFunc(s.places, func(a, b int32) int { return cmp.Compare(rows[a], rows[b]) })
	s.sorted = s.sorted[:0]
	for _, i := range s.places {
		s.sorted = append(s.sorted, rows[i])
	}
}

// targets returns how many targets are under way.
func (s *Search) targets() int { return min(s.most[1], s.Rows.Count-s.first) }

// excluded is the score of what is no partner.
var excluded = float32(math.Inf(-1))

// exclude takes each source, its neighbours in either direction, and what is no partner of any out
// of its scores.
func (s *Search) exclude() {
	n := s.targets()
	strike := func(source int, row uint32) {
		if at := int(row) - s.first; at >= 0 && at < n {
			s.scores[source*n+at] = excluded
		}
	}
	for i, row := range s.asked {
		strike(i, row)
	}
	for target := s.first; s.Only != nil && target < s.first+n; target++ {
		if !s.Only(uint32(target)) {
			for source := range s.asked {
				s.scores[source*n+target-s.first] = excluded
			}
		}
	}
	if s.Graph == nil || len(s.asked) == 0 {
		return
	}
	for i, row := range s.asked {
		if s.Graph.Directed {
			break
		}
		for _, u := range s.Graph.Sources(s.Graph.Vertex[row]) {
			strike(i, s.Graph.Row[u])
		}
	}
	lowest, highest := s.sorted[0], s.sorted[len(s.sorted)-1]
	for target := s.first; target < s.first+n; target++ {
		for _, u := range s.Graph.Sources(s.Graph.Vertex[target]) {
			row := s.Graph.Row[u]
			if row < lowest || row > highest {
				continue
			}
			at, _ := slices.BinarySearch(s.sorted, row)
			for ; at < len(s.sorted) && s.sorted[at] == row; at++ {
				strike(int(s.places[at]), uint32(target))
			}
		}
	}
}

// rowsOfChunk is how many sources one worker looks at before it takes more.
const rowsOfChunk = 64

// Do implements workers.Task: it keeps the best of the scores of some sources.
func (s *Search) Do(chunk, _ int) {
	n := s.targets()
	for i := chunk * rowsOfChunk; i < min(len(s.asked), (chunk+1)*rowsOfChunk); i++ {
		s.keep(i, s.scores[i*n:][:n])
	}
}

// keep keeps the best partners of a source. Targets come in ascending order, so that of equal
// scores the one that was kept first stays.
func (s *Search) keep(source int, scores []float32) {
	heap := s.heaps[source*s.Most:][:s.Most]
	count := s.counts[source]
	bar := excluded // that a score must exceed
	if count == len(heap) {
		bar = heap[0].Score
	}
	for at, score := range scores {
		if !(score > bar) {
			continue
		}
		found := Partner{uint32(s.first + at), score}
		if count < len(heap) {
			heap[count] = found
			count++
			rise(heap[:count])
		} else {
			heap[0] = found
			sink(heap)
		}
		if count == len(heap) {
			bar = heap[0].Score
		}
	}
	s.counts[source] = count
}

// rise moves the last partner of a heap, whose first is the worst, to its place.
func rise(heap []Partner) {
	for at := len(heap) - 1; at > 0; {
		above := (at - 1) / 2
		if compare(heap[at], heap[above]) <= 0 {
			return
		}
		heap[at], heap[above] = heap[above], heap[at]
		at = above
	}
}

// sink moves the first partner to its place.
func sink(heap []Partner) {
	for at := 0; ; {
		worst := at
		for below := 2*at + 1; below <= 2*at+2 && below < len(heap); below++ {
			if compare(heap[below], heap[worst]) > 0 {
				worst = below
			}
		}
		if worst == at {
			return
		}
		heap[at], heap[worst] = heap[worst], heap[at]
		at = worst
	}
}

// Best returns the partners of the i-th row of the last Find, the best first. There are fewer
// than Most where fewer rows are left, or have scores that are numbers. They are valid until
// the next Find.
func (s *Search) Best(i int) []Partner { return s.heaps[i*s.Most:][:s.counts[i]] }
