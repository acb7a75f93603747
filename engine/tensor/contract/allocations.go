package contract

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// Allocations checks that no operation allocates on the heap once it has run. It is
// separate from Run since the reference does allocate.
func Allocations(t *testing.T, d tensor.Device) { allocations(t, d) }

func allocations(r reporter, d tensor.Device) {
	const rows, sources, cols, heads = 300, 500, 48, 3
	b := newBench(r, "Allocations", d, reference.New(), 0)
	defer b.close()
	m := func(rows, cols int) tensor.Matrix {
		return b.in("m", b.native(), rows, cols, b.fine(rows*cols)).view[judged]
	}
	packed := func() tensor.Matrix { return b.packed("m", cols, cols, b.fine(cols*cols)).view[judged] }
	g := b.graph(rows, sources, 30, true).CSR
	x, y, z, w := m(sources, cols), m(rows, cols), m(rows, cols), m(cols, cols)
	line, line2, line3, scale, stats, scores := m(1, cols), m(1, cols), m(1, cols), m(rows, 1), m(rows, 2), m(rows, 2*heads)
	left, right, dleft, dright := m(sources, heads), m(rows, heads), m(sources, heads), m(rows, heads)
	dx, values, dense := m(sources, cols), m(1, g.Entries()), m(rows, sources)
	weights, gradient, moments, squares := packed(), packed(), packed(), packed()
	which := b.in("which", tensor.I32, rows, cols, make([]float64, rows*cols)).view[judged]
	var none tensor.Matrix
	drop := tensor.Dropout{P: .5, Key: keyed.New(1, keyed.Dropout), Vertices: b.vertices(sources)}
	e := &tensor.Epilogue{Bias: line, Activation: tensor.ELU, Dropout: drop}
	plain := &tensor.Epilogue{Activation: tensor.ReLU, Dropout: drop}
	parts := []tensor.Part{{First: 0, X: x.RowRange(0, 100)}, {First: 100, X: x.RowRange(100, 400)}}
	ids, to, labels := make([]uint32, rows), make([]int32, rows), make([]int32, rows)
	for i := range rows {
		ids[i], to[i], labels[i] = uint32(b.below(sources)), int32(b.below(rows)), int32(b.below(cols))
	}
	arena, err := d.NewArena(1 << 16)
	if err != nil {
		r.Errorf("%v", err)
		return
	}
	defer arena.Close()
	from, single := make([]float64, rows*cols), make([]float32, rows*cols)
	for _, op := range []struct {
		name string
		run  func()
	}{
		{"Write", func() { d.Write(y, from) }},
		{"Read", func() { d.Read(from, y) }},
		{"Write32", func() { d.Write32(y, single) }},
		{"Read32", func() { d.Read32(single, y) }},
		{"Zero", func() { d.Zero(y) }},
		{"Alloc", func() { arena.Reset(); arena.Alloc(tensor.F32, rows, cols) }},
		{"MatMul NN", func() { d.MatMul(y, z, w, tensor.NN, true, e) }},
		{"MatMul TN", func() { d.MatMul(w, z, y, tensor.TN, true, e) }},
		{"MatMul NT", func() { d.MatMul(y, z, w, tensor.NT, false, e) }},
		{"Combine", func() { d.Combine(y, 1, z, 2, y) }},
		{"Apply", func() { d.Apply(y, z, e) }},
		{"ApplyBack", func() { d.ApplyBack(y, line2, y, z, e) }},
		{"Gather", func() { d.Gather(y, parts, ids) }},
		{"ScatterAdd", func() { d.ScatterAdd(y, z, to) }},
		{"ScaleRows", func() { d.ScaleRows(y, z, scale) }},
		{"LayerNorm", func() { d.LayerNorm(y, stats, z, line, line2, plain) }},
		{"LayerNormBack", func() { d.LayerNormBack(y, line2, line3, y, z, stats, line) }},
		{"Max", func() { d.Max(y, which, z, 1, true) }},
		{"MaxBack", func() { d.MaxBack(y, z, which, 1) }},
		{"ColumnSums", func() { d.ColumnSums(line, z) }},
		{"Densify", func() { d.Densify(dense, g) }},
		{"DropValues", func() { d.DropValues(values, none, g, drop) }},
		{"Finite", func() { d.Finite(dense) }},
		{"Aggregate", func() { d.Aggregate(y, g, values, x, tensor.Mean, true, e) }},
		{"AggregateBack", func() { d.AggregateBack(dx, g, none, y, tensor.Mean, false) }},
		{"AggregateMax", func() { d.AggregateMax(y, which, g, x) }},
		{"AggregateMaxBack", func() { d.AggregateMaxBack(dx, g, y, which, false) }},
		{"HeadDot", func() { d.HeadDot(left, x, line) }},
		{"HeadDotBack", func() { d.HeadDotBack(dx, line2, left, x, line) }},
		{"Attend", func() { d.Attend(y, scores, g, x, left, right, slope, drop, 50) }},
		{"AttendBack", func() { d.AttendBack(dx, dleft, dright, g, z, scores, x, left, right, slope, drop, 50) }},
		{"AttendV2", func() { d.AttendV2(y, scores, g, x, z, line, slope, drop, 50) }},
		{"AttendV2Back", func() { d.AttendV2Back(dx, y, line2, g, z, scores, x, z, line, slope, drop, 50) }},
		{"CrossEntropy", func() { d.CrossEntropy(y, z, labels, 1) }},
		{"BinaryCrossEntropy", func() { d.BinaryCrossEntropy(y, z, labels, 1) }},
		{"Adam", func() {
			d.Adam(weights, gradient, moments, squares, tensor.AdamStep{Rate: .1, Beta1: .9, Beta2: .9, Epsilon: 1, Step: 1})
		}},
		{"SGD", func() { d.SGD(weights, gradient, moments, tensor.SGDStep{Rate: .1, Momentum: .9}) }},
	} {
		if n := testing.AllocsPerRun(3, op.run); n != 0 {
			r.Errorf("%s: %g allocations", op.name, n)
		}
	}
}
