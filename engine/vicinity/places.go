package vicinity

import (
	"math/bits"
	"slices"
)

// places number some of a graph's vertices, in their order.
type places struct {
	ids   []uint32 // ascending
	marks []uint64 // a bit for each vertex of the graph
	ranks []uint32 // of each word of marks: how many come before it
}

// newPlaces numbers ascending vertices of a graph of so many, and keeps them.
func newPlaces(ids []uint32, vertices uint32) places {
	words := (uint64(vertices) + 63) / 64
	p := places{ids: ids, marks: make([]uint64, words), ranks: make([]uint32, words)}
	for _, v := range ids {
		p.marks[v/64] |= 1 << (v % 64)
	}
	n := uint32(0)
	for i, w := range p.marks {
		p.ranks[i] = n
		n += uint32(bits.OnesCount64(w))
	}
	return p
}

// of returns the number of a vertex, if it has one.
func (p *places) of(v uint32) (int, bool) {
	if uint64(v/64) >= uint64(len(p.marks)) {
		return 0, false
	}
	w, bit := p.marks[v/64], uint64(1)<<(v%64)
	if w&bit == 0 {
		return 0, false
	}
	return int(p.ranks[v/64]) + bits.OnesCount64(w&(bit-1)), true
}

// Vertices returns those that have a number, ascending. The caller must not change
// them.
func (p *places) Vertices() []uint32 { return p.ids }

func (p *places) bytes() uint64 {
	return 4*uint64(cap(p.ids)) + 8*uint64(len(p.marks)) + 4*uint64(len(p.ranks))
}

// Union merges ascending lists of vertices into one.
func Union(lists ...[]uint32) []uint32 {
	var all []uint32
	for _, l := range lists {
		all = append(all, l...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
