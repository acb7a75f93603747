package loads

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/partition"
)

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
