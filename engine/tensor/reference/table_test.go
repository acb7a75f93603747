package reference_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// none stands for a matrix that is left out.
var none tensor.Matrix

// A table makes matrices for one test: always the same ones.
type table struct {
	*testing.T
	*reference.Device
	arena tensor.Arena
	draws keyed.Sequence
}

func lay(t *testing.T) *table {
	d := reference.New()
	arena, err := d.NewArena(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	return &table{t, d, arena, keyed.Key(0).With(uint64(len(t.Name()))).Draws()}
}

// random is between -1 and 1, with a gap in every row.
func (b *table) random(rows, cols int) tensor.Matrix {
	m := b.arena.Alloc(tensor.F64, rows, cols+1).View(0, rows, 0, cols)
	from := make([]float64, rows*cols)
	for i := range from {
		from[i] = 2*b.draws.Float64() - 1
	}
	b.Write(m, from)
	return m
}

func (b *table) zeros(rows, cols int) tensor.Matrix {
	m := b.arena.Alloc(tensor.F64, rows, cols)
	b.Zero(m)
	return m
}

func (b *table) of(rows, cols int, x ...float64) tensor.Matrix {
	m := b.arena.Alloc(tensor.F64, rows, cols)
	b.Write(m, x)
	return m
}

func (b *table) is(what string, m tensor.Matrix, want ...float64) {
	b.Helper()
	got := make([]float64, m.Rows*m.Cols)
	b.Read(got, m)
	if len(got) != len(want) {
		b.Fatalf("%s has %d elements, want %d", what, len(got), len(want))
	}
	for i := range want {
		if d := got[i] - want[i]; !(d < 1e-12 && d > -1e-12) {
			b.Fatalf("%s is %v, want %v", what, got, want)
		}
	}
}

// dot is the sum of the products of what stands in the same places.
func (b *table) dot(x, y tensor.Matrix) float64 {
	p, q := make([]float64, x.Rows*x.Cols), make([]float64, x.Rows*x.Cols)
	b.Read(p, x)
	b.Read(q, y)
	sum := 0.0
	for i := range p {
		sum += p[i] * q[i]
	}
	return sum
}

// graph is five targets out of seven sources: one without entries, one with a double
// entry, Indptr not from 0.
func graph(values bool) *tensor.CSR {
	g := &tensor.CSR{
		Rows: 5, Cols: 7,
		Indptr:  []int64{2, 5, 5, 9, 10, 14},
		Indices: []int32{99, 99, 0, 3, 6, 2, 4, 2, 5, 3, 6, 1, 0, 2},
	}
	if values {
		g.Values = []float32{9, 9, .5, -1, 2, .25, 1, .75, 3, -2, 1, .5, 1.5, .125}
	}
	return g
}

// vertices have no order.
var vertices = []uint32{70, 3, 12, 5, 1 << 31, 8, 41}

func dropout(p float32) tensor.Dropout {
	return tensor.Dropout{P: p, Key: keyed.New(7, keyed.Dropout), Vertices: vertices}
}
