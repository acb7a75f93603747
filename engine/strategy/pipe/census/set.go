package census

import (
	"math/bits"
	"slices"
)

// A Set is a set of a graph's vertices that is filled and emptied again and again. It takes
// a bit for each vertex near others of the set, and eight bytes for each page of the graph.
type Set struct {
	pages   []*page
	touched []uint32 // pages in use
	idle    []*page  // all zeros
}

// pageBits is the binary logarithm of the vertices of a page.
const pageBits = 12

type page [1 << pageBits / 64]uint64

// NewSet returns an empty set of vertices of a graph of so many.
func NewSet(vertices int) *Set {
	return &Set{pages: make([]*page, (vertices+1<<pageBits-1)>>pageBits)}
}

// Add adds a vertex.
func (s *Set) Add(v uint32) {
	p := s.pages[v>>pageBits]
	if p == nil {
		p = s.touch(v >> pageBits)
	}
	p[v>>6%uint32(len(p))] |= 1 << (v % 64)
}

// touch takes a page into use.
func (s *Set) touch(at uint32) *page {
	p := new(page)
	if n := len(s.idle); n > 0 {
		p, s.idle = s.idle[n-1], s.idle[:n-1]
	}
	s.pages[at], s.touched = p, append(s.touched, at)
	return p
}

// Empty removes all vertices.
func (s *Set) Empty() {
	for _, at := range s.touched {
		p := s.pages[at]
		clear(p[:])
		s.pages[at], s.idle = nil, append(s.idle, p)
	}
	s.touched = s.touched[:0]
}

// Count returns the number of vertices.
func (s *Set) Count() (n int) {
	for _, at := range s.touched {
		for _, word := range s.pages[at] {
			n += bits.OnesCount64(word)
		}
	}
	return n
}

// All appends the vertices, ascending.
func (s *Set) All(to []uint32) []uint32 {
	slices.Sort(s.touched)
	for _, at := range s.touched {
		for i, word := range s.pages[at] {
			for ; word != 0; word &= word - 1 {
				to = append(to, at<<pageBits|uint32(i*64+bits.TrailingZeros64(word)))
			}
		}
	}
	return to
}
