package gemm

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// TestEpilogue holds that the epilogue sees each row once, when it is complete.
func TestEpilogue(t *testing.T) {
	for _, f := range families() {
		g := on(t, f, 3)
		for shape, name := range shapes {
			r := rand.New(rand.NewPCG(15, 16))
			for _, s := range append([][3]int{{20, 0, 6}}, bits...) {
				c, a, b := operands(r, shape, s[0], s[1], s[2])
				plain := copyOf(c)
				g.MatMul(plain.Matrix, a.Matrix, b.Matrix, shape, true, &tensor.Epilogue{})

				var one sync.Mutex
				seen := make([]int, s[0])
				asked := &tensor.Epilogue{Activation: tensor.ReLU}
				g.finish = func(y tensor.Matrix, first, n int, e *tensor.Epilogue) {
					one.Lock()
					defer one.Unlock()
					if y != c.Matrix || e != asked {
						t.Errorf("%s: another matrix or epilogue", name)
					}
					sameBits(t, name+" when finished", y.RowRange(first, n), plain.RowRange(first, n))
					for i := range n {
						seen[first+i]++
						for j := range s[2] {
							*at(y, first+i, j) = 7
						}
					}
				}
				g.MatMul(c.Matrix, a.Matrix, b.Matrix, shape, true, asked)
				for i, n := range seen {
					if n != 1 {
						t.Fatalf("%s: row %d was finished %d times", name, i, n)
					}
					for j := range s[2] {
						if v := *at(c.Matrix, i, j); v != 7 {
							t.Fatalf("%s: element %d, %d was %g after the epilogue", name, i, j, v)
						}
					}
				}
			}
		}
	}
}

// TestAllocations holds that products allocate nothing once the scratch memory is
// large enough.
func TestAllocations(t *testing.T) {
	for _, f := range families() {
		g := on(t, f, 2)
		g.finish = func(tensor.Matrix, int, int, *tensor.Epilogue) {}
		e := &tensor.Epilogue{Activation: tensor.ReLU}
		for shape, name := range shapes {
			r := rand.New(rand.NewPCG(17, 18))
			for _, s := range bits {
				c, a, b := operands(r, shape, s[0], s[1], s[2])
				if n := testing.AllocsPerRun(3, func() {
					g.MatMul(c.Matrix, a.Matrix, b.Matrix, shape, true, e)
				}); n != 0 {
					t.Errorf("%v %s %v: %g allocations", f, name, s, n)
				}
			}
		}
	}
}
