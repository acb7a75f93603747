package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/workers"
)

var shapes = map[tensor.Shape]string{tensor.NN: "NN", tensor.TN: "TN", tensor.NT: "NT"}

// on is a Gemm of a family, with so many workers that the test ends.
func on(t testing.TB, f family.Family, threads int) *Gemm {
	pool := workers.New(threads)
	t.Cleanup(pool.Close)
	g := New(pool)
	g.kernels = forFamily(f)
	return g
}

// guarded is a matrix of random numbers with NaN around it: before and after it,
// and between its rows.
type guarded struct {
	tensor.Matrix
	data []float32
}

const (
	guardsBefore  = 37
	guardsBetween = 5
)

func matrix(r *rand.Rand, rows, columns int) guarded {
	stride := columns + guardsBetween
	g := guarded{data: make([]float32, guardsBefore+(rows+1)*stride)}
	for i := range g.data {
		g.data[i] = float32(math.NaN())
	}
	whole := tensor.OverF32(1, len(g.data), g.data).View(0, 1, guardsBefore, rows*stride+columns)
	g.Matrix = tensor.Over(tensor.F32, rows, columns, stride, whole.Base())
	for i := range rows {
		for j := range columns {
			*at(g.Matrix, i, j) = float32(r.NormFloat64())
		}
	}
	return g
}

// copyOf has the same numbers in memory of its own.
func copyOf(m guarded) guarded {
	c := guarded{Matrix: m.Matrix, data: append([]float32(nil), m.data...)}
	c.Matrix = tensor.Over(tensor.F32, m.Rows, m.Cols, m.Stride, unsafe.Pointer(&c.data[guardsBefore]))
	return c
}

// intact fails if something was written beside the matrix.
func (g guarded) intact(t *testing.T, what string) {
	t.Helper()
	for i, v := range g.data {
		row, column := 0, -1
		if n := i - guardsBefore; n >= 0 {
			row, column = n/g.Stride, n%g.Stride
		}
		if inside := row < g.Rows && column >= 0 && column < g.Cols; !inside && v == v {
			t.Fatalf("%s: wrote %g beside the matrix, at row %d, column %d", what, v, row, column)
		}
	}
}

func operands(r *rand.Rand, shape tensor.Shape, rows, depth, columns int) (c, a, b guarded) {
	switch shape {
	case tensor.TN:
		return matrix(r, rows, columns), matrix(r, depth, rows), matrix(r, depth, columns)
	case tensor.NT:
		return matrix(r, rows, columns), matrix(r, rows, depth), matrix(r, columns, depth)
	}
	return matrix(r, rows, columns), matrix(r, rows, depth), matrix(r, depth, columns)
}

// product64 is an element of the product in float64, and the sum of what was
// added without its signs, by which rounding is judged.
func product64(a, b tensor.Matrix, shape tensor.Shape, i, j, depth int) (sum, size float64) {
	for k := range depth {
		var x, y float32
		switch shape {
		case tensor.NN:
			x, y = *at(a, i, k), *at(b, k, j)
		case tensor.TN:
			x, y = *at(a, k, i), *at(b, k, j)
		case tensor.NT:
			x, y = *at(a, i, k), *at(b, j, k)
		}
		sum += float64(x) * float64(y)
		size += math.Abs(float64(x) * float64(y))
	}
	return sum, size
}

// check computes one product and compares it with float64.
func check(t *testing.T, g *Gemm, r *rand.Rand, shape tensor.Shape, rows, depth, columns int, add bool) {
	t.Helper()
	what := fmt.Sprintf("%s %d x %d x %d, add %v", shapes[shape], rows, depth, columns, add)
	c, a, b := operands(r, shape, rows, depth, columns)
	if !add {
		for i := range c.data { // nothing of what was there may stay
			c.data[i] = float32(math.NaN())
		}
	}
	was := copyOf(c)
	g.MatMul(c.Matrix, a.Matrix, b.Matrix, shape, add, nil)
	c.intact(t, what)
	for i := range rows {
		for j := range columns {
			want, size := product64(a.Matrix, b.Matrix, shape, i, j, depth)
			if add {
				before := float64(*at(was.Matrix, i, j))
				want, size = want+before, size+math.Abs(before)
			}
			got := float64(*at(c.Matrix, i, j))
			if !(math.Abs(got-want) <= size*float64(depth+1)*0x1p-24) {
				t.Fatalf("%s: element %d, %d is %g and not %g", what, i, j, got, want)
			}
		}
	}
}

// TestProducts compares with float64, over ragged sizes and those where blocks,
// chunks and parts end.
func TestProducts(t *testing.T) {
	sizes := [][3]int{
		{1, 1, 1}, {14, 1, 32}, {15, 384, 33}, {13, 385, 31}, {28, 383, 64}, {3, 770, 49},
		{16, 16, 7}, {47, 100, 47}, {100, 47, 40}, {5, 20, 1100}, {129, 5, 513}, {300, 40, 90},
		{17, 2048, 9}, {7, 2047, 16}, {33, 4100, 25}, {2, 5000, 3}, {300, 60, 100},
		{9, 1019, 70}, {1019, 40, 20}, {20, 40, 1019}, // rows 1024 apart
	}
	for _, f := range families() {
		t.Run(f.String(), func(t *testing.T) {
			g := on(t, f, 3)
			for shape := range shapes {
				r := rand.New(rand.NewPCG(1, 2))
				for _, s := range sizes {
					check(t, g, r, shape, s[0], s[1], s[2], false)
					check(t, g, r, shape, s[0], s[1], s[2], true)
				}
				for range 150 {
					check(t, g, r, shape, 1+r.IntN(70), 1+r.IntN(70), 1+r.IntN(70), r.IntN(2) == 0)
				}
				for columns := range 70 { // every way to cut columns
					check(t, g, r, shape, 1+r.IntN(30), 1+r.IntN(9), 1+columns, columns%2 == 0)
				}
			}
		})
	}
}

// TestEmpty multiplies what has no rows, no columns or nothing to add up.
func TestEmpty(t *testing.T) {
	for _, f := range families() {
		g := on(t, f, 2)
		for shape := range shapes {
			r := rand.New(rand.NewPCG(3, 4))
			check(t, g, r, shape, 5, 0, 7, false)
			check(t, g, r, shape, 5, 0, 7, true)
			check(t, g, r, shape, 0, 3, 7, false)
			check(t, g, r, shape, 5, 3, 0, true)
			g.MatMul(tensor.Matrix{}, tensor.Matrix{}, tensor.Matrix{}, shape, false, nil)
		}
	}
}

// TestWrongShapes holds that matrices that don't fit are refused.
func TestWrongShapes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	g := on(t, family.Generic, 1)
	c, a, b := operands(r, tensor.NN, 2, 3, 4)
	for what, call := range map[string]func(){
		"depth": func() { g.MatMul(c.Matrix, a.Matrix, b.RowRange(0, 2), tensor.NN, false, nil) },
		"rows":  func() { g.MatMul(c.Matrix, a.RowRange(0, 1), b.Matrix, tensor.NN, false, nil) },
		"shape": func() { g.MatMul(c.Matrix, a.Matrix, b.Matrix, tensor.NT, false, nil) },
		"type": func() {
			g.MatMul(c.Matrix, a.Matrix, tensor.OverBF16(3, 4, make([]uint16, 12)), tensor.NN, false, nil)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: nothing was said", what)
				}
			}()
			call()
		}()
	}
}
