//go:build unix

package gemm

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// edge is memory between two pages that can't be touched.
type edge []byte

func newEdge(t *testing.T, bytes int) edge {
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

// put is a copy of m at the start or at the end of the memory.
func (e edge) put(m tensor.Matrix, atEnd bool) tensor.Matrix {
	stride := m.Cols + 3
	first := 0
	if atEnd {
		first = len(e) - ((m.Rows-1)*stride+m.Cols)*4
	}
	to := tensor.Over(tensor.F32, m.Rows, m.Cols, stride, unsafe.Pointer(&e[first]))
	for i := range m.Rows {
		copy(unsafe.Slice(at(to, i, 0), m.Cols), unsafe.Slice(at(m, i, 0), m.Cols))
	}
	return to
}

// TestEdges holds that nothing is touched before or after the operands.
func TestEdges(t *testing.T) {
	forA, forB, forC := newEdge(t, 1<<20), newEdge(t, 1<<20), newEdge(t, 1<<20)
	for _, f := range families() {
		g := on(t, f, 2)
		for shape, name := range shapes {
			r := rand.New(rand.NewPCG(13, 14))
			for range 60 {
				rows, depth, columns := 1+r.IntN(60), 1+r.IntN(60), 1+r.IntN(80)
				if r.IntN(10) == 0 {
					depth += 2100
				}
				c, a, b := operands(r, shape, rows, depth, columns)
				for _, end := range []bool{false, true} {
					got := forC.put(c.Matrix, end)
					g.MatMul(got, forA.put(a.Matrix, end), forB.put(b.Matrix, end), shape, false, nil)
					want := copyOf(c)
					g.MatMul(want.Matrix, a.Matrix, b.Matrix, shape, false, nil)
					sameBits(t, f.String()+" "+name, got, want.Matrix)
				}
			}
		}
	}
}
