package arrange

import "slices"

// Mirrors are the vertices of other ways with edges into a way, ascending. Their rows are
// needed beside the way's own, and its part of their gradient is returned. A node has all
// mirrors of its own ways and, of those of other nodes, the ones that its ways own. A
// forecast has them counted.
type Mirrors struct {
	shape  *Shape
	Of     [][]uint32 // by way
	counts [][]int    // by way, then by chunk; nil: Of has them
}

// NewMirrors returns those of some ways; the others' are empty.
func NewMirrors(s *Shape) *Mirrors { return &Mirrors{shape: s, Of: make([][]uint32, s.Ways())} }

// CountedMirrors returns what is counted of them, by way and chunk.
func CountedMirrors(s *Shape, counts [][]int) *Mirrors { return &Mirrors{shape: s, counts: counts} }

// Count returns the number of pairs of a vertex and a way.
func (m *Mirrors) Count() (n int) {
	for way := range m.shape.Ways() {
		n += m.All(way)
	}
	return n
}

// Known returns the number of mirrors that the node of some ways has: theirs, and those of
// other ways that they own.
func (m *Mirrors) Known(ways []int) (n int) {
	mine := make([]bool, m.shape.Ways())
	for _, way := range ways {
		mine[way] = true
		n += m.All(way)
	}
	for other := range mine {
		for _, way := range ways {
			for position := 0; !mine[other] && position < m.shape.Positions(); position++ {
				n += m.Number(other, way, position)
			}
		}
	}
	return n
}

// All returns the number of a way's mirrors.
func (m *Mirrors) All(way int) (n int) {
	if m.counts == nil {
		return len(m.Of[way])
	}
	for _, of := range m.counts[way] {
		n += of
	}
	return n
}

// Number returns how many of a way's mirrors are in the chunk at a position of another way.
func (m *Mirrors) Number(way, other, position int) int {
	if m.counts == nil {
		first, end := m.From(way, other, position)
		return end - first
	}
	if chunk := m.shape.ways[other] + position; chunk < m.shape.ways[other+1] {
		return m.counts[way][chunk]
	}
	return 0
}

// From returns the range of a way's mirrors that are in the chunk at a position of another
// way.
func (m *Mirrors) From(way, other, position int) (first, end int) {
	a, b := m.shape.Vertices(other, position)
	first, _ = slices.BinarySearch(m.Of[way], a)
	end, _ = slices.BinarySearch(m.Of[way], b)
	return first, max(first, end)
}
