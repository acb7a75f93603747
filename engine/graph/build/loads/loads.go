// Package loads decides what the cut of a graph balances over its shards.
package loads

import (
	"cmp"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/partition"
)

const (
	// A type is balanced by itself if a shard would have at least so many of its vertices: of fewer,
	// whole numbers make shards unequal, and the cut pays for it.
	leastOfType = 64
	// mostTypes is how many types are balanced by themselves, the largest ones: each takes memory for
	// every vertex, and makes the cut worse.
	mostTypes = 8
)

// Loads are the weights of vertices that a partitioner balances: whether it is a vertex, of each
// large type by itself; the edges that are stored at it; and, if the graph has any, whether it is a
// training vertex.
type Loads struct {
	ends  []uint32 // of the types, in the order of their vertices
	kinds []int    // the weight in which a type's vertices count
	types int      // weights that count vertices: 1 without types
	train bool     // there are training vertices
}

// New returns what is balanced where a source is cut into so many shards.
func New(src graph.Source, shards int) Loads {
	l := Loads{types: 1, train: trains(src)}
	types := src.Meta().Types
	if types == nil || len(types.Vertices) < 2 {
		return l
	}
	large := make([]int, 0, len(types.Vertices))
	for i, t := range types.Vertices {
		if t.Vertices >= uint64(leastOfType*shards) {
			large = append(large, i)
		}
	}
	slices.SortStableFunc(large, func(a, b int) int { return cmp.Compare(types.Vertices[b].Vertices, types.Vertices[a].Vertices) })
	large = large[:min(len(large), mostTypes)]
	// All others together are one more.
	rest, end := len(large), uint64(0)
	for i, t := range types.Vertices {
		end += t.Vertices
		kind := slices.Index(large, i)
		if kind < 0 {
			kind = rest
		}
		l.ends, l.kinds = append(l.ends, uint32(end)), append(l.kinds, kind)
	}
	l.types = slices.Max(l.kinds) + 1
	return l
}

// Constraints returns how many weights each vertex has.
func (l *Loads) Constraints() int {
	if l.train {
		return l.types + 2
	}
	return l.types + 1
}

// Tolerance returns how much the heaviest shard may weigh over the average, by weight.
func (l *Loads) Tolerance() []float64 {
	t := slices.Repeat([]float64{1.05}, l.types)
	for len(t) < l.Constraints() {
		t = append(t, 1.10)
	}
	return t
}

// Typed reports whether vertices are balanced by type.
func (l *Loads) Typed() bool { return l.types > 1 }

// Untyped returns the same loads with all vertices balanced together.
func (l *Loads) Untyped() Loads { return Loads{types: 1, train: l.train} }

// Weigh fills in the weights of a vertex at which so many edges are stored. trains reports whether
// it is a training vertex.
func (l *Loads) Weigh(weights []uint32, vertex, edges uint32, trains func(vertex uint32) bool) {
	clear(weights)
	kind := 0
	if len(l.ends) > 0 {
		at, _ := slices.BinarySearch(l.ends, vertex+1)
		kind = l.kinds[at]
	}
	weights[kind], weights[l.types] = 1, edges
	if l.train && trains(vertex) {
		weights[l.types+1] = 1
	}
}

// trains reports whether the graph has any training vertex.
func trains(src graph.Source) bool {
	for _, marks := range src.Splits() {
		if slices.Contains(marks, graph.Train) {
			return true
		}
	}
	return false
}

// A Tally adds up the edges that are stored in each part of a graph that was cut.
type Tally struct {
	of      *Loads
	edges   []uint64 // of each part
	largest uint64   // of a vertex
}

// Tally returns an empty one.
func (l *Loads) Tally(parts int) *Tally { return &Tally{of: l, edges: make([]uint64, parts)} }

// Add adds the vertices of a block, whose parts are among those of all vertices.
func (t *Tally) Add(part []uint16, b partition.Block) {
	constraints := t.of.Constraints()
	for row := range len(b.Indptr) - 1 {
		edges := uint64(b.Weights[row*constraints+t.of.types])
		t.edges[part[int(b.First)+row]] += edges
		t.largest = max(t.largest, edges)
	}
}

// Over reports whether a part has more edges than is tolerated, and than one vertex makes unavoidable.
func (t *Tally) Over() bool {
	all := uint64(0)
	for _, n := range t.edges {
		all += n
	}
	average := float64(all) / float64(len(t.edges))
	most := slices.Max(t.edges)
	return most > t.largest && float64(most) > t.of.Tolerance()[t.of.types]*average
}
