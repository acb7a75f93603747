package vicinity

import (
	"iter"
	"math/bits"
	"slices"
)

// A Set is a set of a graph's vertices. It takes a bit for each vertex near others of the
// set, nothing for long runs that are all in it, and four bytes for each page of the
// graph: it is not as long as the graph. Only one goroutine may change it.
type Set struct {
	table []uint32 // of each page: none, whole, or where its words are, plus held
	words []uint64
}

const (
	pageVertices = 512
	pageWords    = pageVertices / 64

	none  = 0 // of the page's vertices are in the set
	whole = 1 // all are
	held  = 2
)

// NewSet returns an empty set of vertices of a graph of so many.
func NewSet(vertices uint32) *Set {
	return &Set{table: make([]uint32, (uint64(vertices)+pageVertices-1)/pageVertices)}
}

// Has reports whether a vertex is in the set. It may be one that the graph has not.
func (s *Set) Has(v uint32) bool {
	p := v / pageVertices
	if uint64(p) >= uint64(len(s.table)) {
		return false
	}
	switch at := s.table[p]; at {
	case none:
		return false
	case whole:
		return true
	default:
		return s.words[(at-held)*pageWords+v%pageVertices/64]>>(v%64)&1 != 0
	}
}

// page returns the words of a page, of which some are in the set.
func (s *Set) page(at uint32) []uint64 { return s.words[(at-held)*pageWords:][:pageWords] }

// hold returns the words of a page that is not whole, for changes.
func (s *Set) hold(p uint32) []uint64 {
	if s.table[p] == none {
		s.table[p] = uint32(len(s.words)/pageWords) + held
		s.words = append(s.words, make([]uint64, pageWords)...)
	}
	return s.page(s.table[p])
}

// Add adds a vertex.
func (s *Set) Add(v uint32) {
	if p := v / pageVertices; s.table[p] != whole {
		s.hold(p)[v%pageVertices/64] |= 1 << (v % 64)
	}
}

// AddRange adds a run of vertices.
func (s *Set) AddRange(r Range) {
	for v := r.First; v < r.End; {
		p := v / pageVertices
		if v%pageVertices == 0 && r.End-v >= pageVertices {
			s.table[p] = whole // what words it had stay unused
			v += pageVertices
			continue
		}
		s.Add(v)
		v++
	}
}

// AddAll adds the vertices of a set of the same graph.
func (s *Set) AddAll(o *Set) {
	for p, at := range o.table {
		switch {
		case at == none || s.table[p] == whole:
		case at == whole:
			s.table[p] = whole
		default:
			to := s.hold(uint32(p))
			for i, w := range o.page(at) {
				to[i] |= w
			}
		}
	}
}

// Clone returns a copy.
func (s *Set) Clone() *Set {
	return &Set{table: slices.Clone(s.table), words: slices.Clone(s.words)}
}

// Len counts the vertices.
func (s *Set) Len() (n int) {
	for _, at := range s.table {
		n += s.count(at, 0, pageVertices)
	}
	return n
}

// Count counts the vertices from first to before end.
func (s *Set) Count(first, end uint32) (n int) {
	for v := first; v < end; {
		p := v / pageVertices
		last := min(uint64(end), uint64(p+1)*pageVertices)
		n += s.count(s.table[p], v%pageVertices, uint32(last-uint64(p)*pageVertices))
		if last >= uint64(end) {
			break
		}
		v = uint32(last)
	}
	return n
}

// count counts those of a page from one place in it to before another.
func (s *Set) count(at, first, end uint32) (n int) {
	switch at {
	case none:
		return 0
	case whole:
		return int(end - first)
	}
	for i, w := range s.page(at) {
		from, to := uint32(64*i), uint32(64*i+64)
		if to <= first || from >= end {
			continue
		}
		if first > from {
			w &^= 1<<(first-from) - 1
		}
		if end < to {
			w &= 1<<(end-from) - 1
		}
		n += bits.OnesCount64(w)
	}
	return n
}

// All yields the vertices, ascending.
func (s *Set) All() iter.Seq[uint32] { return s.Without(nil) }

// Without yields the vertices that are not in another set of the same graph, ascending.
func (s *Set) Without(o *Set) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for p := range s.table {
			for i := range pageWords {
				w := s.word(p, i)
				if w == 0 {
					continue
				}
				if o != nil {
					w &^= o.word(p, i)
				}
				for ; w != 0; w &= w - 1 {
					if !yield(uint32(p*pageVertices + 64*i + bits.TrailingZeros64(w))) {
						return
					}
				}
			}
		}
	}
}

// word returns a word of a page.
func (s *Set) word(p, i int) uint64 {
	switch at := s.table[p]; at {
	case none:
		return 0
	case whole:
		return 1<<64 - 1
	default:
		return s.words[int(at-held)*pageWords+i]
	}
}

// Bytes returns the memory that it takes.
func (s *Set) Bytes() uint64 {
	if s == nil {
		return 0
	}
	return 4*uint64(cap(s.table)) + 8*uint64(cap(s.words))
}
