package vicinity

import "slices"

// Places number some of a graph's vertices, in their order. They are immutable.
type Places struct {
	set   *Set
	ranks []uint32 // of each page of the set: how many come before it
	n     int
}

// NewPlaces numbers ascending vertices of a graph of so many.
func NewPlaces(ids []uint32, vertices uint32) Places {
	p := Places{set: NewSet(vertices), n: len(ids)}
	pages := uint32(0)
	for i, v := range ids {
		if i == 0 || v/pageVertices != ids[i-1]/pageVertices {
			pages++
		}
	}
	p.set.words = make([]uint64, 0, pages*pageWords)
	for _, v := range ids {
		p.set.Add(v)
	}
	p.ranks = make([]uint32, len(p.set.table))
	n := uint32(0)
	for i, at := range p.set.table {
		p.ranks[i] = n
		n += uint32(p.set.count(at, 0, pageVertices))
	}
	return p
}

// Of returns the number of a vertex, if it has one.
func (p *Places) Of(v uint32) (int, bool) {
	if p.set == nil || !p.set.Has(v) {
		return 0, false
	}
	page := v / pageVertices
	return int(p.ranks[page]) + p.set.count(p.set.table[page], 0, v%pageVertices), true
}

// Len returns how many vertices have a number.
func (p *Places) Len() int { return p.n }

// Bytes returns the memory that they take.
func (p *Places) Bytes() uint64 { return p.set.Bytes() + 4*uint64(len(p.ranks)) }

// Union merges ascending lists of vertices into one.
func Union(lists ...[]uint32) []uint32 {
	if len(lists) == 1 {
		return lists[0]
	}
	var all []uint32
	for _, l := range lists {
		all = append(all, l...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
