package nn

import "github.com/hopmesh/hopmesh/engine/tensor"

// rows is a stage's input, dense or sparse. In the first stage they are features,
// possibly with dropout.
type rows struct {
	matrix tensor.Matrix // of sparse rows too, once X was called
	sparse *tensor.CSR
	sums   tensor.Matrix // features aggregated along the edges, if given
	// carried is, in the second step of a divided stage, what edges carry of the block's
	// sources. The other rows are then those of the targets.
	carried tensor.Matrix
	drop    tensor.Epilogue // dropout of the features
	mapped  *stage          // the linear map that the rows have yet to go through; nil: none

	values    tensor.Matrix // of sparse rows, after dropout
	part      tensor.CSR    // of sparse rows: those of the targets
	partValue tensor.Matrix
}

func (r *rows) count() int {
	if r.sparse != nil {
		return r.sparse.Rows
	}
	return r.matrix.Rows
}

// features prepares the rows of the first stage.
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

// X returns the rows of the sources as a matrix. Sparse rows are expanded once, for
// layers that need them dense; their dropout is the same per element.
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

// Mul computes y = e(x*w), where x is the rows of all sources; with add, y is added
// before e.
func (c *Call) Mul(y, w tensor.Matrix, add bool, e *tensor.Epilogue) {
	if r := &c.input; r.sparse != nil {
		c.Device.Aggregate(y, r.sparse, r.values, w, tensor.Sum, add, e)
		return
	}
	c.Device.MatMul(y, c.input.matrix, w, tensor.NN, add, e)
}

// MulOwn is Mul for the targets' rows.
func (c *Call) MulOwn(y, w tensor.Matrix, add bool, e *tensor.Epilogue) {
	if r := &c.input; r.sparse != nil {
		c.Device.Aggregate(y, &r.part, r.partValue, w, tensor.Sum, add, e)
		return
	}
	c.Device.MatMul(y, c.Own(c.input.matrix), w, tensor.NN, add, e)
}

// MulBack is the backward pass of Mul: it adds to the weight's gradient and sets dx,
// unless that is empty.
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

// MulOwnBack is the backward pass of MulOwn: it adds to the weight's gradient and, unless
// it is empty, to dx (of all sources).
func (c *Call) MulOwnBack(dx, dw, dy, w tensor.Matrix) {
	switch r := &c.input; {
	case r.sparse == nil:
		c.Device.MatMul(dw, c.Own(r.matrix), dy, tensor.TN, true, nil)
	case c.targets == c.sources:
		c.Device.AggregateBack(dw, r.sparse, r.values, dy, tensor.Sum, true)
	default:
		// The transpose of sparse rows covers all of them.
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
