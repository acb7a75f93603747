package nn

import "github.com/hopmesh/hopmesh/engine/tensor"

// rows is what a stage is given, dense or sparse. In the first stage they are
// features, which may be subject to dropout.
type rows struct {
	matrix tensor.Matrix // of sparse rows too, once a layer has asked
	sparse *tensor.CSR
	sums   tensor.Matrix   // of features along the edges, if they are added up already
	drop   tensor.Epilogue // of the features

	values    tensor.Matrix // of sparse rows, once they are dropped
	part      tensor.CSR    // of sparse rows, those of the targets
	partValue tensor.Matrix
}

func (r *rows) count() int {
	if r.sparse != nil {
		return r.sparse.Rows
	}
	return r.matrix.Rows
}

// features makes the rows of the first stage ready.
func (c *Call) features(p float64) {
	r := &c.input
	r.drop.Dropout = c.dropout(dropInput, p, c.vertices)
	dropped := r.drop.Dropout.P != 0
	if r.sparse == nil {
		if x := r.matrix; x.Type != c.Device.Type() {
			r.matrix = c.New(x.Rows, x.Cols)
			c.Device.Combine(r.matrix, 1, x, 0, tensor.Matrix{})
		}
		if dropped {
			x := r.matrix
			r.matrix = c.New(x.Rows, x.Cols)
			c.Device.Apply(r.matrix, x, &r.drop)
		}
		return
	}
	g := r.sparse
	first := g.Indptr[0]
	if dropped {
		r.values = c.New(1, g.Entries())
		c.Device.DropValues(r.values, tensor.Matrix{}, g, r.drop.Dropout)
	}
	r.part, r.partValue = *g, r.values
	if c.targets != c.sources {
		r.part = tensor.CSR{
			Rows: c.targets, Cols: g.Cols,
			Indptr: g.Indptr[c.own:][:c.targets+1], Indices: g.Indices, Values: g.Values,
		}
		if dropped {
			at := int(r.part.Indptr[0] - first)
			r.partValue = r.values.View(0, 1, at, r.part.Entries())
		}
	}
}

// X is the rows of the sources as a matrix. Sparse ones are written out once, for
// layers that can do no better; their dropout is the same by element.
func (c *Call) X() tensor.Matrix {
	r := &c.input
	if r.sparse != nil && r.matrix.None() {
		r.matrix = c.New(r.sparse.Rows, r.sparse.Cols)
		c.Device.Densify(r.matrix, r.sparse)
		if r.drop.Dropout.P != 0 {
			c.Device.Apply(r.matrix, r.matrix, &r.drop)
		}
	}
	return r.matrix
}

// Mul is y = e(x*w), x being the rows of all sources; with add, y is added to
// before e.
func (c *Call) Mul(y, w tensor.Matrix, add bool, e *tensor.Epilogue) {
	if r := &c.input; r.sparse != nil {
		c.Device.Aggregate(y, r.sparse, r.values, w, tensor.Sum, add, e)
		return
	}
	c.Device.MatMul(y, c.input.matrix, w, tensor.NN, add, e)
}

// MulOwn is Mul of the targets' rows.
func (c *Call) MulOwn(y, w tensor.Matrix, add bool, e *tensor.Epilogue) {
	if r := &c.input; r.sparse != nil {
		c.Device.Aggregate(y, &r.part, r.partValue, w, tensor.Sum, add, e)
		return
	}
	c.Device.MatMul(y, c.Own(c.input.matrix), w, tensor.NN, add, e)
}

// MulBack is the backward of Mul: it adds to the weight's gradient, and sets dx if
// that is not left out.
func (c *Call) MulBack(dx, dw, dy, w tensor.Matrix) {
	if r := &c.input; r.sparse != nil {
		c.Device.AggregateBack(dw, r.sparse, r.values, dy, tensor.Sum, true)
	} else {
		c.Device.MatMul(dw, r.matrix, dy, tensor.TN, true, nil)
	}
	if !dx.None() {
		c.Device.MatMul(dx, dy, w, tensor.NT, false, nil)
	}
}

// MulOwnBack is the backward of MulOwn: it adds to the weight's gradient, and to dx
// (of all sources) if that is not left out.
func (c *Call) MulOwnBack(dx, dw, dy, w tensor.Matrix) {
	switch r := &c.input; {
	case r.sparse == nil:
		c.Device.MatMul(dw, c.Own(r.matrix), dy, tensor.TN, true, nil)
	case c.targets == c.sources:
		c.Device.AggregateBack(dw, r.sparse, r.values, dy, tensor.Sum, true)
	default:
		// The transpose of sparse rows is that of all of them.
		all := c.New(c.sources, dy.Cols)
		c.Device.Zero(all)
		c.Device.Combine(c.Own(all), 1, dy, 0, tensor.Matrix{})
		c.Device.AggregateBack(dw, r.sparse, r.values, all, tensor.Sum, true)
		c.Free(all)
	}
	if !dx.None() {
		c.Device.MatMul(c.Own(dx), dy, w, tensor.NT, true, nil)
	}
}
