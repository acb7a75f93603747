//go:build unix

package edges

import (
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// island is memory between two pages that can't be touched.
func island(t *testing.T, bytes int) []byte {
	page := os.Getpagesize()
	bytes = (bytes + page - 1) / page * page
	all, err := syscall.Mmap(-1, 0, bytes+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{all[:page], all[page+bytes:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return all[page : page+bytes]
}

// on is a copy of what stands in from, at the start of an island or at its end.
func on[E any](memory []byte, from []E, atEnd bool) []E {
	var e E
	first := 0
	if bytes := len(from) * int(unsafe.Sizeof(e)); atEnd {
		first = len(memory) - bytes
	}
	to := unsafe.Slice((*E)(unsafe.Pointer(&memory[first])), len(from))
	copy(to, from)
	return to
}

// Nothing is touched before or after the operands of an aggregation.
func TestMemory(t *testing.T) {
	var islands [5][]byte
	for i := range islands {
		islands[i] = island(t, 1<<19)
	}
	with(t, func(t *testing.T, e *Edges, rng *rand.Rand) {
		g := shape{rows: 40, cols: 900, degree: 5, hub: 300}.graph(rng)
		first := g.Indptr[0]
		for i, at := range g.Indptr {
			g.Indptr[i] = at - first
		}
		indices := g.Indices[first:]
		values := make([]float32, len(indices))
		for i := range values {
			values[i] = float32(rng.NormFloat64())
		}
		for width := 1; width <= 140; width++ {
			whole, halves := make([]float32, g.Cols*width), make([]uint16, g.Cols*width)
			for i := range whole {
				whole[i], halves[i] = float32(rng.NormFloat64()), uint16(0x3e00+rng.UintN(0x200))
			}
			for _, atEnd := range []bool{false, true} {
				y := on(islands[0], make([]float32, g.Rows*width), atEnd)
				g.Indices = on(islands[1], indices, atEnd)
				weights := on(islands[2], values, atEnd)
				for _, x := range []tensor.Matrix{
					tensor.OverF32(g.Cols, width, on(islands[3], whole, atEnd)),
					tensor.OverBF16(g.Cols, width, on(islands[4], halves, atEnd)),
				} {
					for _, v := range []tensor.Matrix{{}, tensor.OverF32(1, len(weights), weights)} {
						want := make([]float32, len(y))
						aside := *g
						aside.Indices = indices
						e.Aggregate(tensor.OverF32(g.Rows, width, want), &aside, v, x, tensor.Mean, false, nil)
						e.Aggregate(tensor.OverF32(g.Rows, width, y), g, v, x, tensor.Mean, false, nil)
						if !slices.Equal(y, want) {
							t.Fatalf("width %d of %s: other numbers", width, x.Type)
						}
					}
				}
			}
		}
	})
}
