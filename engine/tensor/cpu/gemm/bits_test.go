package gemm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
)

// bits are the sizes for which bits are compared: small, ragged, and large enough
// for many chunks, blocks and parts.
var bits = [][3]int{{9, 5, 7}, {61, 70, 47}, {500, 400, 129}, {75, 5000, 23}, {20, 2100, 530}}

// sameBits fails unless both hold the same numbers, bit for bit.
func sameBits(t *testing.T, what string, got, want tensor.Matrix) {
	t.Helper()
	for i := range want.Rows {
		for j := range want.Cols {
			if x, y := *at(got, i, j), *at(want, i, j); math.Float32bits(x) != math.Float32bits(y) {
				t.Fatalf("%s: element %d, %d is %g and not %g", what, i, j, x, y)
			}
		}
	}
}

// TestThreads holds that bits don't depend on the number of threads.
func TestThreads(t *testing.T) {
	for _, f := range families() {
		one, two, eight := on(t, f, 1), on(t, f, 2), on(t, f, 8)
		for shape, name := range shapes {
			r := rand.New(rand.NewPCG(7, 8))
			for _, s := range bits {
				c, a, b := operands(r, shape, s[0], s[1], s[2])
				for _, add := range []bool{false, true} {
					x, y, z := copyOf(c), copyOf(c), copyOf(c)
					one.MatMul(x.Matrix, a.Matrix, b.Matrix, shape, add, nil)
					two.MatMul(y.Matrix, a.Matrix, b.Matrix, shape, add, nil)
					eight.MatMul(z.Matrix, a.Matrix, b.Matrix, shape, add, nil)
					sameBits(t, f.String()+" "+name+" on two", y.Matrix, x.Matrix)
					sameBits(t, f.String()+" "+name+" on eight", z.Matrix, x.Matrix)
				}
			}
		}
	}
}

// TestFamilies holds that AVX2 and AVX-512 give the same bits.
func TestFamilies(t *testing.T) {
	if !slices.Contains(families(), family.AVX512) {
		return // there is nothing to compare
	}
	narrow, wide := on(t, family.AVX2, 2), on(t, family.AVX512, 2)
	for shape, name := range shapes {
		r := rand.New(rand.NewPCG(9, 10))
		for _, s := range bits {
			c, a, b := operands(r, shape, s[0], s[1], s[2])
			for _, add := range []bool{false, true} {
				x, y := copyOf(c), copyOf(c)
				narrow.MatMul(x.Matrix, a.Matrix, b.Matrix, shape, add, nil)
				wide.MatMul(y.Matrix, a.Matrix, b.Matrix, shape, add, nil)
				sameBits(t, name, x.Matrix, y.Matrix)
			}
		}
	}
}

// TestRowsAlone holds that a row of c has the same bits whatever other rows there
// are and wherever it stands.
func TestRowsAlone(t *testing.T) {
	for _, f := range families() {
		g := on(t, f, 2)
		r := rand.New(rand.NewPCG(11, 12))
		for _, shape := range []tensor.Shape{tensor.NN, tensor.NT} {
			for _, s := range bits {
				c, a, b := operands(r, shape, s[0], s[1], s[2])
				before := copyOf(c)
				g.MatMul(c.Matrix, a.Matrix, b.Matrix, shape, true, nil)
				for _, n := range []int{1, 2, 3, 5, 14, 31} {
					n = min(n, s[0])
					first := r.IntN(s[0] - n + 1)
					part := copyOf(before)
					rows := part.RowRange(first, n)
					g.MatMul(rows, a.RowRange(first, n), b.Matrix, shape, true, nil)
					sameBits(t, f.String()+" "+shapes[shape], rows, c.RowRange(first, n))
				}
			}
		}
	}
}
