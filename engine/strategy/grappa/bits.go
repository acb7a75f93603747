package grappa

import (
	"iter"
	mathbits "math/bits"
	"slices"
)

// bits is a set of vertices.
type bits []uint64

func newBits(vertices int) bits { return make(bits, (vertices+63)/64) }

func (b bits) has(v uint32) bool { return b[v/64]>>(v%64)&1 != 0 }
func (b bits) set(v uint32)      { b[v/64] |= 1 << (v % 64) }
func (b bits) clone() bits       { return slices.Clone(b) }

func (b bits) setAll(s span) {
	for v := s.first; v < s.end; v++ {
		b.set(v)
	}
}

func (b bits) add(o bits) {
	for i, w := range o {
		b[i] |= w
	}
}

func (b bits) count() (n int) {
	for _, w := range b {
		n += mathbits.OnesCount64(w)
	}
	return n
}

// all yields the vertices, ascending.
func (b bits) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i, w := range b {
			for ; w != 0; w &= w - 1 {
				if !yield(uint32(64*i + mathbits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}
