package nn

import "github.com/hopmesh/hopmesh/engine/tensor"

// edgeCost is the cost of an edge per column, in multiplications of a dense product: rows
// gathered by index come from memory.
const edgeCost = 8

// narrowFirst reports whether the rows should be multiplied by an in x out weight before
// they are aggregated along the edges, not after. Sparse rows always are. A stage run
// alone is split into parts of any size, which must not change a bit of the result.
func (c *Call) narrowFirst(in, out int) bool {
	switch {
	case c.input.sparse != nil:
		return true
	case c == &c.pass.alone:
		return out < in
	case c.by.count > 0:
		return false // each relation has few of the sources, and its edges are not counted ahead
	}
	edges, inner := edgeCost*c.Block.Entries(), c.index > 0 || c.pass.model.inputs
	before := c.sources*in*out + edges*out
	after := c.targets*in*out + edges*in
	if !c.forward {
		// Backward: the weight's gradient, then that of the rows. The first stage has no
		// gradient of its rows, unless they are learnt, and so no aggregation back along the edges after the
		// product.
		before += before
		after += c.targets * in * out
		if inner {
			before += c.sources * in * out
			after += c.targets*in*out + edges*in
		}
	}
	return before <= after // the product is not needed after it
}

// sumsFirst reports whether Layer will leave nothing that reads what it was given.
func (c *Call) sumsFirst() bool {
	s := c.stage
	switch conv := s.conv.(type) {
	case *gcn:
		return !c.narrowFirst(conv.in, conv.out) && s.apart()
	case *gcnii:
		return s.apart()
	case *summed:
		return true
	}
	return false
}

// Along computes y = e(aggregate(the sources' rows) times w), in the cheaper order. With
// add, y is added before e. It uses Kept[slot].
func (c *Call) Along(slot int, y, w tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue) {
	if sums := c.input.sums; !sums.None() {
		c.Device.MatMul(y, sums, w, tensor.NN, add, e)
		c.Kept[slot] = sums
		return
	}
	if c.narrowFirst(w.Rows, w.Cols) {
		product := c.product(w, nil)
		c.Device.Aggregate(y, &c.Block.CSR, tensor.Matrix{}, product, how, add, e)
		c.drop(product)
		return
	}
	sums := c.New(c.targets, w.Rows)
	c.Device.Aggregate(sums, &c.Block.CSR, tensor.Matrix{}, c.seen(), how, false, nil)
	c.Device.MatMul(y, sums, w, tensor.NN, add, e)
	c.Kept[slot] = sums
}

// alongCarries returns how many columns edges carry where a layer uses Along.
func (c *Call) alongCarries(in, out int) int {
	if c.narrowFirst(in, out) {
		return out
	}
	return 0
}

// AlongBack is the backward pass of Along: it adds to the weight's gradient and sets dx,
// unless that is empty.
func (c *Call) AlongBack(slot int, dx, dw, dy, w tensor.Matrix, how tensor.Aggregation) {
	none := tensor.Matrix{}
	sums := c.Kept[slot]
	if sums.None() {
		product := c.pass.lend(c.sources, w.Cols)
		c.Device.AggregateBack(product, &c.Block.CSR, none, dy, how, false)
		c.MulBack(dx, dw, product, w)
		c.pass.back(product)
		return
	}
	c.Device.MatMul(dw, sums, dy, tensor.TN, true, nil)
	if !dx.None() {
		dsums := c.pass.lend(c.targets, w.Rows)
		c.Device.MatMul(dsums, dy, w, tensor.NT, false, nil)
		c.Device.AggregateBack(dx, &c.Block.CSR, none, dsums, how, false)
		c.pass.back(dsums)
	}
}

// seen returns the rows that the convolution sees along edges.
func (c *Call) seen() tensor.Matrix {
	if !c.input.carried.None() {
		return c.input.carried
	}
	return c.X()
}

// of returns the rows of the targets among those that edges carry.
func (c *Call) of(carried tensor.Matrix) tensor.Matrix {
	return carried.RowRange(c.Block.Own, c.targets)
}

// product returns the sources' rows times a weight.
func (c *Call) product(w tensor.Matrix, e *tensor.Epilogue) tensor.Matrix {
	if !c.input.carried.None() {
		return c.input.carried
	}
	y := c.New(c.sources, w.Cols)
	c.Mul(y, w, false, e)
	return y
}

// drop frees a product, unless it is carried.
func (c *Call) drop(product tensor.Matrix) {
	if c.input.carried.None() {
		c.Free(product)
	}
}
