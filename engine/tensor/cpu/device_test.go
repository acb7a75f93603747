package cpu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// A twin is a matrix of F32 with gaps between rows and guards around, and the same
// numbers in F64.
type twin struct {
	m, want tensor.Matrix
	memory  []float32
	skip    int
}

const guard = 12345.5

// newTwin starts skip elements after an aligned address.
func newTwin(rows, cols, gap, skip int, fill func() float64) *twin {
	stride := cols + gap
	t := &twin{memory: make([]float32, rows*stride+skip+16), skip: skip}
	for i := range t.memory {
		t.memory[i] = guard
	}
	exact := make([]float64, rows*cols)
	t.m = tensor.Over(tensor.F32, rows, cols, stride, unsafe.Pointer(&t.memory[skip]))
	t.want = tensor.Over(tensor.F64, rows, cols, cols, unsafe.Pointer(unsafe.SliceData(exact)))
	for i := range exact {
		x := float32(fill())
		exact[i] = float64(x)
		t.memory[skip+i/cols*stride+i%cols] = x
	}
	return t
}

// check compares with the twin, and looks at the guards.
func (w *twin) check(t *testing.T, what string, tolerance float64) {
	t.Helper()
	exact := w.want.F64()
	for i, x := range w.memory {
		at := i - w.skip
		r, c := 0, w.m.Cols
		if at >= 0 && w.m.Stride > 0 {
			r, c = at/w.m.Stride, at%w.m.Stride
		}
		if r >= w.m.Rows || c >= w.m.Cols {
			if x != guard {
				t.Fatalf("%s: element %d outside of %d x %d was written: %v", what, at, w.m.Rows, w.m.Cols, x)
			}
			continue
		}
		want := exact[r*w.m.Cols+c]
		if d := math.Abs(float64(x) - want); !(d <= tolerance*(1+math.Abs(want))) && !(math.IsNaN(want) && x != x) && float64(x) != want {
			t.Fatalf("%s: row %d column %d of %d x %d is %v and not %v", what, r, c, w.m.Rows, w.m.Cols, x, want)
		}
	}
}

type dims struct{ rows, cols, gap, skip int }

var sizes = []dims{
	{0, 5, 0, 0}, {3, 0, 2, 0}, {1, 1, 0, 1}, {5, 3, 2, 3}, {7, 8, 0, 0}, {9, 15, 1, 1}, {4, 16, 0, 0},
	{11, 17, 3, 5}, {33, 47, 0, 0}, {300, 100, 4, 2}, {1100, 64, 0, 0}, {130, 257, 7, 1}, {1, 70001, 0, 3},
}

func normal(r *rand.Rand) func() float64 { return func() float64 { return r.NormFloat64() * 2 } }

func zeros() float64 { return 0 }

func epilogues(r *rand.Rand, rows, cols int) (mine, exact []*tensor.Epilogue) {
	vertices := make([]uint32, rows)
	for i := range vertices {
		vertices[i] = r.Uint32()
	}
	bias := newTwin(1, cols, 0, 1, normal(r))
	for _, withBias := range []bool{false, true} {
		for a := tensor.Linear; a <= tensor.ELU; a++ {
			for _, p := range []float32{0, 0.3} {
				e := tensor.Epilogue{Activation: a, Dropout: tensor.Dropout{P: p, Key: keyed.New(7, keyed.Dropout), Vertices: vertices}}
				f := e
				if withBias {
					e.Bias, f.Bias = bias.m, bias.want
				}
				mine, exact = append(mine, &e), append(exact, &f)
			}
		}
	}
	return append(mine, nil), append(exact, nil)
}

func TestEpilogues(t *testing.T) {
	d, ref := cpu.New(2), reference.New()
	defer d.Close()
	for _, s := range sizes {
		r := rand.New(rand.NewPCG(1, 2))
		mine, exact := epilogues(r, s.rows, s.cols)
		for i, e := range mine {
			what := fmt.Sprint(s, i)
			x := newTwin(s.rows, s.cols, s.gap, s.skip, normal(r))
			y := newTwin(s.rows, s.cols, s.gap+1, s.skip, zeros)
			d.Apply(y.m, x.m, e)
			ref.Apply(y.want, x.want, exact[i])
			y.check(t, what, 1e-6)
			dy := newTwin(s.rows, s.cols, s.gap, s.skip, normal(r))
			dx := newTwin(s.rows, s.cols, s.gap, 0, zeros)
			dbias := newTwin(1, s.cols, 0, s.skip, normal(r))
			d.ApplyBack(dx.m, dbias.m, dy.m, y.m, e)
			ref.ApplyBack(dx.want, dbias.want, dy.want, y.want, exact[i])
			dx.check(t, what+" back", 2e-6)
			dbias.check(t, what+" bias", 1e-4)
			d.Apply(x.m, x.m, e)
			ref.Apply(x.want, x.want, exact[i])
			x.check(t, what+" in place", 1e-6)
			d.ApplyBack(dy.m, tensor.Matrix{}, dy.m, y.m, e)
			ref.ApplyBack(dy.want, tensor.Matrix{}, dy.want, y.want, exact[i])
			dy.check(t, what+" back in place", 2e-6)
		}
	}
}
