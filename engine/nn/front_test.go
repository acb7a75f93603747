package nn_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// sums is what the terms of a front make of features, computed term by term as nodes
// that hold some columns each would; bring gets each term's rows.
func sums(r *run, f nn.Front, b *sample.Block, targets int, x tensor.Matrix, see func(t nn.Term, rows tensor.Matrix)) tensor.Matrix {
	none := tensor.Matrix{}
	if f.Sources {
		targets = x.Rows
	}
	z := r.arena.Alloc(tensor.F64, targets, f.Cols)
	r.device.Zero(z)
	for _, t := range f.Terms {
		rows := r.arena.Alloc(tensor.F64, targets, x.Cols)
		r.device.Zero(rows)
		if t.Own != 0 {
			own := 0
			if b != nil && !f.Sources {
				own = b.Own
			}
			r.device.Combine(rows, t.Own, x.RowRange(own, targets), 0, none)
		}
		if t.Edges {
			r.device.Aggregate(rows, &b.CSR, none, x, t.How, true, nil)
		}
		see(t, rows)
		w := r.Weights.View(0, 1, t.Param.Offset, t.Param.Rows*t.Param.Cols).Reshape(t.Param.Rows, t.Param.Cols)
		r.device.MatMul(z.View(0, targets, t.Col, t.Param.Cols), rows, w, tensor.NN, true, nil)
	}
	return z
}

// A pass from the sum of the front has the logits and the gradients of one from the
// features: its own, and those of the front's weights by the rows of each term.
func TestFronts(t *testing.T) {
	fronts := 0
	for i, s := range specs() {
		s.Dropout, s.InputDropout = []float64{0, 0.3}[i%2], []float64{0, 0.3}[i/2%2]
		const columns = 7
		m := newModel(t, s, columns)
		f, err := m.Front()
		if err != nil {
			continue
		}
		fronts++
		g := newGraph(uint64(i), 9, columns)
		roots := []uint32{4, 3, 1, 7}
		bs := g.blocks(m, roots, 2)
		r := newRun(t, ref(), m, weights(m, uint64(i)))
		in, labels := g.input(r.device, first(bs, roots), false), g.labelsOf(roots)
		want := r.loss(bs, in, labels, true)
		gradients := r.read(r.Gradients)
		r.device.Zero(r.Gradients)

		r.arena.Reset()
		var b *sample.Block
		targets := len(roots)
		if len(bs) > 0 {
			b, targets = &bs[0], bs[0].Rows
		}
		var rows []tensor.Matrix
		if d := r.InputDropout(in.Vertices); d.P > 0 {
			r.device.Apply(in.Dense, in.Dense, &tensor.Epilogue{Dropout: d})
		}
		z := sums(r, f, b, targets, in.Dense, func(_ nn.Term, y tensor.Matrix) { rows = append(rows, y) })
		logits := r.ForwardFrom(bs, in.Vertices, z)
		dz := r.arena.Alloc(tensor.F64, logits.Rows, logits.Cols)
		got, _ := r.device.CrossEntropy(dz, logits, labels, 1)
		if !near(got, want, 1e-12, 0) {
			t.Errorf("%+v: the loss is %v from the sum and %v from the features", s, got, want)
		}
		dsum := r.arena.Alloc(tensor.F64, z.Rows, f.Cols)
		r.BackwardTo(dsum, dz)
		for k, term := range f.Terms {
			q := term.Param
			dw := r.Gradients.View(0, 1, q.Offset, q.Rows*q.Cols).Reshape(q.Rows, q.Cols)
			if slices.ContainsFunc(r.read(dw), func(x float64) bool { return x != 0 }) {
				t.Errorf("%+v: the gradient of %s, which is the front's, was added to", s, q.Name)
			}
			r.device.MatMul(dw, rows[k], dsum.View(0, z.Rows, term.Col, q.Cols), tensor.TN, true, nil)
		}
		for j, x := range r.read(r.Gradients) {
			if !near(x, gradients[j], 1e-10, 1e-13) {
				t.Errorf("%+v: gradient %d is %v from the sum and %v from the features", s, j, x, gradients[j])
				break
			}
		}
	}
	if fronts < 14 {
		t.Errorf("only %d models have a front", fronts)
	}
}

func TestModelsWithoutFront(t *testing.T) {
	for _, c := range []struct {
		change func(s *nn.Spec)
		model  string
		says   string
	}{
		{nil, "gcnii", "not linear"},
		{func(s *nn.Spec) { s.Aggregator = "max" }, "sage", "sage.aggregator=max"},
	} {
		s := nn.Defaults(c.model)
		if c.change != nil {
			c.change(&s)
		}
		if _, err := newModel(t, s, 5).Front(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, which should say %q", c.model, err, c.says)
		}
	}
}
