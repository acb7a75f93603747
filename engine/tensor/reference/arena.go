package reference

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

const (
	alignment = 64 / 8  // words: alignment of a matrix
	slabWords = 1 << 15 // minimum growth of an arena
)

// arena allocates from the heap. All its memory is NaN, or -1, which exposes programs
// that read what they have not written.
type arena struct {
	slabs [][]float64
	slab  int // the current slab
	used  int // words of it
}

// NewArena implements tensor.Device.
func (*Device) NewArena(bytes int) (tensor.Arena, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("an arena of %d bytes", bytes)
	}
	a := &arena{}
	if bytes > 0 {
		a.grow((bytes + 7) / 8)
	}
	return a, nil
}

// grow adds a slab of this many words, aligned.
func (a *arena) grow(words int) {
	words = (words + alignment - 1) / alignment * alignment
	slab := make([]float64, words+alignment)
	skip := -int(uintptr(unsafe.Pointer(&slab[0]))/8) & (alignment - 1)
	a.slabs = append(a.slabs, slab[skip:][:words])
}

// Alloc implements tensor.Arena.
func (a *arena) Alloc(t tensor.Type, rows, cols int) tensor.Matrix {
	words := max((rows*cols*t.Bytes()+7)/8, 1)
	words = (words + alignment - 1) / alignment * alignment
	for a.slab < len(a.slabs) && a.used+words > len(a.slabs[a.slab]) {
		a.slab, a.used = a.slab+1, 0
	}
	if a.slab == len(a.slabs) {
		a.grow(max(words, slabWords))
	}
	memory := a.slabs[a.slab][a.used:][:words]
	a.used += words
	for i := range memory {
		memory[i] = math.Float64frombits(math.MaxUint64)
	}
	return tensor.Over(t, rows, cols, cols, unsafe.Pointer(&memory[0]))
}

// Reset implements tensor.Arena.
func (a *arena) Reset() { a.slab, a.used = 0, 0 }

// Bytes implements tensor.Arena.
func (a *arena) Bytes() int {
	words := 0
	for _, s := range a.slabs {
		words += len(s)
	}
	return words * 8
}

// Close implements tensor.Arena.
func (a *arena) Close() { *a = arena{} }
