package train

import (
	"sort"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// grain is how many vertices are judged together, from the first of a shard on. Parts
// consist of whole grains: sums over them do not depend on how large parts are, nor on
// who computes which shards.
const grain = 1024

// An extent is the vertices that inference computes, of some shards in their order. A
// vertex is known by its row, of which the first shard's first has 0.
type extent struct {
	spans []span
	rows  int
	edges int
}

// A span is the vertices of one shard, of which there are some.
type span struct {
	shard, row, rows int
	first            uint32 // vertex
}

// extentOf is that of the shards that are wanted.
func extentOf(shards []*graph.Shard, wanted func(shard int) bool) (e extent) {
	for i, s := range shards {
		if s.Vertices == 0 || !wanted(i) {
			continue
		}
		e.spans = append(e.spans, span{shard: i, row: e.rows, rows: s.Vertices, first: s.First})
		e.rows, e.edges = e.rows+s.Vertices, e.edges+len(s.Indices)
	}
	return e
}

// at is the place of the span that has a row.
func (e *extent) at(row int) int {
	return sort.Search(len(e.spans), func(i int) bool { return e.spans[i].row > row }) - 1
}

// end is that of the grain which a row is in.
func (e *extent) end(row int) int {
	s := &e.spans[e.at(row)]
	return s.row + min(((row-s.row)/grain+1)*grain, s.rows)
}

// vertices appends those of n rows from first on.
func (e *extent) vertices(to []uint32, first, n int) []uint32 {
	for at := e.at(first); n > 0; at++ {
		s := &e.spans[at]
		some := min(n, s.row+s.rows-first)
		for v := s.first + uint32(first-s.row); some > 0; v++ {
			to = append(to, v)
			first, n, some = first+1, n-1, some-1
		}
	}
	return to
}

// find is the row of a vertex, if it has one. near is the place of a span that is
// looked at first, and becomes that of the vertex.
func (e *extent) find(v uint32, near *int) (row int, ok bool) {
	if s := &e.spans[*near]; v-s.first < uint32(s.rows) {
		return s.row + int(v-s.first), true
	}
	at := sort.Search(len(e.spans), func(i int) bool { return e.spans[i].first > v }) - 1
	if at < 0 || v-e.spans[at].first >= uint32(e.spans[at].rows) {
		return 0, false
	}
	*near = at
	return e.spans[at].row + int(v-e.spans[at].first), true
}
