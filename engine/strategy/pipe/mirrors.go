package pipe

import (
	"math/bits"
	"slices"

	"github.com/hopmesh/hopmesh/engine/sample"
)

// Mirrors are, of each way, the vertices of other ways from which edges come to it,
// ascending: their rows are needed beside its own, and its part of their gradient goes
// back. All nodes find the same, since each has all edges.
type Mirrors struct {
	shape *Shape
	of    [][]uint32 // each way
}

// NewMirrors looks at the edges of all vertices.
func NewMirrors(s *Shape, t *sample.Topology) *Mirrors {
	m := &Mirrors{shape: s}
	marks := make([]uint64, (t.Vertices()+63)/64)
	for way := range s.Ways() {
		clear(marks)
		first, end, _, _ := s.Of(way)
		for v := first; v < end; v++ {
			sources, _ := t.Row(int(v))
			for _, u := range sources {
				if uint32(u) < first || uint32(u) >= end {
					marks[u/64] |= 1 << (u % 64)
				}
			}
		}
		var ids []uint32
		for i, w := range marks {
			for ; w != 0; w &= w - 1 {
				ids = append(ids, uint32(i*64+bits.TrailingZeros64(w)))
			}
		}
		m.of = append(m.of, ids)
	}
	return m
}

// Count counts the pairs of a vertex and a way.
func (m *Mirrors) Count() (n int) {
	for _, ids := range m.of {
		n += len(ids)
	}
	return n
}

// from is those of a way that are in the chunk at a position of another: which of its
// mirrors they are, from one to before another.
func (m *Mirrors) from(way, other, position int) (first, end int) {
	a, b := m.shape.Vertices(other, position)
	first, _ = slices.BinarySearch(m.of[way], a)
	end, _ = slices.BinarySearch(m.of[way], b)
	return first, max(first, end)
}
