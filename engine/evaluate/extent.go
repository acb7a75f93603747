package evaluate

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// chunkRows is how many vertices are scored together, from the first of a shard on. Parts
// consist of whole chunks, so that sums over them depend neither on how large parts are nor
// on which node computes which shards.
const chunkRows = 1024

// An extent is the vertices that inference computes, those of some shards in their order.
// The rows of vertices count from 0, that of the first shard's first.
type extent struct {
	spans []span
	rows  int
	edges int
	mean  float64 // edges of a row, where only that is known; else 0
}

// A span is the vertices of one shard, which has at least one.
type span struct {
	shard, row, rows int
	first            uint32 // vertex
}

// extentOf returns the extent of the shards that are wanted.
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

// at is the index of the span that has a row.
func (e *extent) at(row int) int {
	return sort.Search(len(e.spans), func(i int) bool { return e.spans[i].row > row }) - 1
}

// end is the end of the chunk that a row is in.
func (e *extent) end(row int) int {
	s := &e.spans[e.at(row)]
	return s.row + min(((row-s.row)/chunkRows+1)*chunkRows, s.rows)
}

// vertex returns that of a row. near is the index of the span to look at first, and becomes
// that of the row.
func (e *extent) vertex(row int, near *int) uint32 {
	s := &e.spans[*near]
	if row < s.row || row >= s.row+s.rows {
		*near = e.at(row)
		s = &e.spans[*near]
	}
	return s.first + uint32(row-s.row)
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

// find returns the row of a vertex, if it has one. near is the index of the span to look at
// first, and becomes that of the vertex.
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

// decode returns the rows of the vertices that another node has listed. It returns an error
// unless all of them are of the extent, and ascend.
func (e *extent) decode(ids []byte) ([]uint32, error) {
	rows, near, last := make([]uint32, 0, len(ids)/4), 0, -1
	for ; len(ids) > 0; ids = ids[4:] {
		v := binary.LittleEndian.Uint32(ids)
		row, ok := 0, false
		if len(e.spans) > 0 {
			row, ok = e.find(v, &near)
		}
		if !ok {
			return nil, fmt.Errorf("vertex %d is not one of this node's", v)
		}
		if row <= last {
			return nil, fmt.Errorf("vertex %d is listed out of order", v)
		}
		last = row
		rows = append(rows, uint32(row))
	}
	return rows, nil
}
