package edges

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/workers"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// judge computes in float64.
var judge = reference.New()

// families are those that this machine has.
func families() []family.Family {
	return family.Current().Within()
}

// with runs a test on each family with one worker.
func with(t *testing.T, test func(t *testing.T, e *Edges, rng *rand.Rand)) {
	for _, f := range families() {
		t.Run(f.String(), func(t *testing.T) {
			test(t, edgesOn(t, f, 1), rand.New(rand.NewPCG(1, 2)))
		})
	}
}

func edgesOn(t testing.TB, f family.Family, threads int) *Edges {
	pool := workers.New(threads)
	t.Cleanup(pool.Close)
	return newOf(pool, f)
}

const guard = 12345

// A framed is a matrix with guards around it, which starts at no even address.
type framed struct {
	tensor.Matrix
	whole  []float32
	halves []uint16
	ints   []int32
	before int
}

func frame(rng *rand.Rand, t tensor.Type, rows, cols int) *framed {
	f := &framed{before: 1 + rng.IntN(17)}
	stride := cols + rng.IntN(3)*rng.IntN(20)
	n := f.before + rows*stride + 17
	switch t {
	case tensor.F32:
		f.whole = make([]float32, n)
		for i := range f.whole {
			f.whole[i] = guard
		}
		f.Matrix = tensor.Over(t, rows, cols, stride, unsafe.Pointer(&f.whole[f.before]))
	case tensor.BF16:
		f.halves = make([]uint16, n)
		for i := range f.halves {
			f.halves[i] = 0x7fff // a NaN
		}
		f.Matrix = tensor.Over(t, rows, cols, stride, unsafe.Pointer(&f.halves[f.before]))
	default:
		f.ints = make([]int32, n)
		for i := range f.ints {
			f.ints[i] = guard
		}
		f.Matrix = tensor.Over(t, rows, cols, stride, unsafe.Pointer(&f.ints[f.before]))
	}
	return f
}

func (f *framed) each(what func(i, j, at int)) {
	for i := range f.Rows {
		for j := range f.Cols {
			what(i, j, f.before+i*f.Stride+j)
		}
	}
}

// random is a framed matrix of numbers.
func random(rng *rand.Rand, t tensor.Type, rows, cols int) *framed {
	f := frame(rng, t, rows, cols)
	f.each(func(_, _, at int) {
		v := float32(rng.NormFloat64())
		if t == tensor.BF16 {
			f.halves[at] = uint16(math.Float32bits(v) >> 16)
		} else {
			f.whole[at] = v
		}
	})
	return f
}

// guarded fails if something beside the matrix was written.
func (f *framed) guarded(t *testing.T, what string) {
	t.Helper()
	inside := make([]bool, len(f.whole)+len(f.ints))
	f.each(func(_, _, at int) { inside[at] = true })
	for at, in := range inside {
		if !in && (f.whole != nil && f.whole[at] != guard || f.ints != nil && f.ints[at] != guard) {
			t.Fatalf("%s: %d x %d, stride %d: written at %d, before its start at %d or between rows", what, f.Rows, f.Cols, f.Stride, at, f.before)
		}
	}
}

// wide is the same in float64; integers stay what they are.
func (f *framed) wide() tensor.Matrix {
	if f.ints != nil {
		m := make([]int32, 0, f.Rows*f.Cols)
		f.each(func(_, _, at int) { m = append(m, f.ints[at]) })
		return tensor.Over(tensor.I32, f.Rows, f.Cols, f.Cols, unsafe.Pointer(unsafe.SliceData(m)))
	}
	m := make([]float64, 0, f.Rows*f.Cols)
	f.each(func(_, _, at int) {
		if f.halves != nil {
			m = append(m, float64(math.Float32frombits(uint32(f.halves[at])<<16)))
		} else {
			m = append(m, float64(f.whole[at]))
		}
	})
	return tensor.Over(tensor.F64, f.Rows, f.Cols, f.Cols, unsafe.Pointer(unsafe.SliceData(m)))
}

// equals compares with what the judge says; numbers are around 1 before they are
// added up, terms of them.
func (f *framed) equals(t *testing.T, what string, want tensor.Matrix, terms float64) {
	t.Helper()
	f.guarded(t, what)
	got := f.wide()
	if f.ints != nil {
		if f.Rows*f.Cols > 0 && !slices.Equal(got.I32(), want.I32()) {
			t.Fatalf("%s: other integers", what)
		}
		return
	}
	for i := range f.Rows * f.Cols {
		g, w := got.F64()[i], want.F64()[i]
		if math.IsNaN(g) && math.IsNaN(w) || g == w {
			continue
		}
		if !(math.Abs(g-w) <= 2e-6*terms+1e-5*math.Abs(w)) {
			t.Fatalf("%s: %d x %d at [%d,%d]: %g, want %g", what, f.Rows, f.Cols, i/f.Cols, i%f.Cols, g, w)
		}
	}
}

// bits of all elements.
func (f *framed) bits() []uint32 {
	var b []uint32
	f.each(func(_, _, at int) {
		if f.ints != nil {
			b = append(b, uint32(f.ints[at]))
		} else {
			b = append(b, math.Float32bits(f.whole[at]))
		}
	})
	return b
}

func (f *framed) clone() *framed {
	c := *f
	c.whole, c.ints = slices.Clone(f.whole), slices.Clone(f.ints)
	switch {
	case f.whole != nil:
		c.Matrix = tensor.Over(f.Type, f.Rows, f.Cols, f.Stride, unsafe.Pointer(&c.whole[f.before]))
	case f.ints != nil:
		c.Matrix = tensor.Over(f.Type, f.Rows, f.Cols, f.Stride, unsafe.Pointer(&c.ints[f.before]))
	}
	return &c
}

// A shape says what graphs are tried.
type shape struct {
	rows, cols, degree int
	hub                int // entries of a row in the middle; half as many of a column
	values             bool
}

func (s shape) String() string {
	return fmt.Sprintf("%d x %d, degree %d, hub %d, values %t", s.rows, s.cols, s.degree, s.hub, s.values)
}

// graph makes one with empty rows, entries before its first, and duplicates.
func (s shape) graph(rng *rand.Rand) *tensor.CSR {
	before := rng.IntN(4)
	g := &tensor.CSR{Rows: s.rows, Cols: s.cols, Indptr: []int64{int64(before)}}
	for range before {
		g.Indices = append(g.Indices, -1)
	}
	for r := range s.rows {
		n := rng.IntN(2*s.degree + 1)
		if rng.IntN(5) == 0 || s.cols == 0 {
			n = 0
		}
		if r == s.rows/2 && s.hub > 0 {
			n = s.hub
		}
		for range n {
			c := rng.IntN(s.cols)
			if s.hub > 0 && rng.IntN(4) == 0 {
				c = s.cols / 3
			}
			g.Indices = append(g.Indices, int32(c))
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	if s.values {
		for range g.Indices {
			g.Values = append(g.Values, float32(rng.NormFloat64()))
		}
	}
	g.Transposed = transposed(g, before)
	return g
}

func transposed(g *tensor.CSR, before int) *tensor.Transpose {
	t := &tensor.Transpose{Indptr: make([]int64, g.Cols+1)}
	byColumn := make([][]int64, g.Cols)
	for at := g.Indptr[0]; at < g.Indptr[g.Rows]; at++ {
		byColumn[g.Indices[at]] = append(byColumn[g.Indices[at]], at)
	}
	for range before {
		t.Rows, t.Edges = append(t.Rows, -1), append(t.Edges, -1)
	}
	t.Indptr[0] = int64(before)
	for c, entries := range byColumn {
		for _, at := range entries {
			row, found := slices.BinarySearch(g.Indptr, at)
			if found {
				for g.Indptr[row+1] == at {
					row++
				}
			} else {
				row--
			}
			t.Rows = append(t.Rows, int32(row))
			t.Edges = append(t.Edges, int32(at-g.Indptr[0]))
		}
		t.Indptr[c+1] = int64(len(t.Rows))
	}
	return t
}

// widths are those of real models and odd ones.
func widths(rng *rand.Rand) []int {
	w := []int{0, 1, 7, 8, 16, 40, 47, 64, 100, 128, 256, 602}
	for range 6 {
		w = append(w, 1+rng.IntN(70))
	}
	return w
}

var shapes = []shape{
	{rows: 0, cols: 0}, {rows: 3, cols: 0}, {rows: 0, cols: 4}, {rows: 1, cols: 1, degree: 1},
	{rows: 17, cols: 23, degree: 4}, {rows: 60, cols: 41, degree: 9, values: true},
	{rows: 33, cols: 20, degree: 3, hub: 3000}, {rows: 29, cols: 31, degree: 3, hub: 2500, values: true},
}
