package nn

import "github.com/hopmesh/hopmesh/engine/tensor"

// gin is the convolution of Xu et al.: an MLP of two products applied to the sum of the
// vertex's own row and its neighbours' rows.
type gin struct{ in, inner, out int }

func newGIN(s Spec, p Place) Conv { return &gin{p.In, s.Hidden, p.Out} }

func (l *gin) Weights() []Weight {
	return []Weight{
		{"inner.weight", l.in, l.inner, Fan(l.in)},
		{"inner.bias", 1, l.inner, Fan(l.in)},
		{"weight", l.inner, l.out, Fan(l.inner)},
		{Bias, 1, l.out, Fan(l.inner)},
	}
}

func (l *gin) Words(use func(string) string) string {
	return "a of a vertex = its own x + the sum of value * x of the source over its in-edges. h = a * " + use("inner.weight") + " + " + use("inner.bias") +
		". h = max(h, 0) (ReLU). y = h * " + use("weight") + "."
}

func (l *gin) Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	inner, g, none := c.New(c.Targets(), l.inner), &c.Block.CSR, tensor.Matrix{}
	first := c.Epilogue(tensor.Epilogue{Bias: c.Weight(1), Activation: tensor.ReLU})
	if c.narrowFirst(l.in, l.inner) {
		product := c.product(c.Weight(0), nil)
		c.Device.Combine(inner, 1, c.of(product), 0, none)
		c.Device.Aggregate(inner, g, none, product, tensor.Sum, true, first)
		c.drop(product)
	} else {
		sums := c.New(c.Targets(), l.in)
		x := c.seen()
		c.Device.Combine(sums, 1, c.of(x), 0, none)
		c.Device.Aggregate(sums, g, none, x, tensor.Sum, true, nil)
		c.Device.MatMul(inner, sums, c.Weight(0), tensor.NN, false, first)
		c.Kept[1] = sums
	}
	c.Device.MatMul(y, inner, c.Weight(2), tensor.NN, false, e)
	c.Kept[0] = inner
}

func (l *gin) carries(c *Call) int { return c.alongCarries(l.in, l.inner) }

func (l *gin) carry(c *Call, to tensor.Matrix) { c.Mul(to, c.Weight(0), false, nil) }

func (l *gin) readsOwn() bool { return false }

func (l *gin) front() ([]frontTerm, int) {
	return []frontTerm{{weight: 0, own: 1, edges: true, how: tensor.Sum}}, l.inner
}

func (l *gin) finish(c *Call, y, sum tensor.Matrix, e *tensor.Epilogue) {
	inner := c.New(c.Targets(), l.inner)
	c.Device.Apply(inner, sum, c.Epilogue(tensor.Epilogue{Bias: c.Weight(1), Activation: tensor.ReLU}))
	c.Device.MatMul(y, inner, c.Weight(2), tensor.NN, false, e)
	c.Kept[0] = inner
}

func (l *gin) finishBack(c *Call, dy tensor.Matrix) tensor.Matrix { return l.innerBack(c, dy) }

// innerBack adds to the gradients of the second product and of the bias before it, and
// returns the gradient at the first product's sum.
func (l *gin) innerBack(c *Call, dy tensor.Matrix) tensor.Matrix {
	inner := c.Kept[0]
	c.Device.MatMul(c.Gradient(2), inner, dy, tensor.TN, true, nil)
	dinner := c.New(c.Targets(), l.inner)
	c.Device.MatMul(dinner, dy, c.Weight(2), tensor.NT, false, nil)
	first := c.Epilogue(tensor.Epilogue{Bias: c.Weight(1), Activation: tensor.ReLU})
	c.Device.ApplyBack(dinner, c.Gradient(1), dinner, inner, first)
	return dinner
}

func (l *gin) Backward(c *Call, dx, dy tensor.Matrix) {
	sums, g, none := c.Kept[1], &c.Block.CSR, tensor.Matrix{}
	dinner := l.innerBack(c, dy)
	if sums.None() {
		product := c.New(c.Sources(), l.inner)
		c.Device.AggregateBack(product, g, none, dinner, tensor.Sum, false)
		c.Device.Combine(c.Own(product), 1, c.Own(product), 1, dinner)
		c.MulBack(dx, c.Gradient(0), product, c.Weight(0))
		c.Free(product, dinner)
		return
	}
	c.Device.MatMul(c.Gradient(0), sums, dinner, tensor.TN, true, nil)
	if !dx.None() {
		dsums := c.New(c.Targets(), l.in)
		c.Device.MatMul(dsums, dinner, c.Weight(0), tensor.NT, false, nil)
		c.Device.AggregateBack(dx, g, none, dsums, tensor.Sum, false)
		c.Device.Combine(c.Own(dx), 1, c.Own(dx), 1, dsums)
		c.Free(dsums)
	}
	c.Free(dinner)
}
