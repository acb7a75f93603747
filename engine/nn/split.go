package nn

import "github.com/hopmesh/hopmesh/engine/tensor"

// multiplied is a gcn's product of each row with its weight.
type multiplied struct{ in, out int }

func (l *multiplied) Weights() []Weight {
	return []Weight{{"weight", l.in, l.out, Glorot(l.in, l.out)}}
}

func (l *multiplied) Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	c.Mul(y, c.Weight(0), false, e)
}

func (l *multiplied) Backward(c *Call, dx, dy tensor.Matrix) {
	c.MulBack(dx, c.Gradient(0), dy, c.Weight(0))
}

// summed adds up rows along edges, and has no weight.
type summed struct{}

func (*summed) Weights() []Weight { return nil }

func (*summed) Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	c.Device.Aggregate(y, &c.Block.CSR, tensor.Matrix{}, c.X(), tensor.Sum, false, e)
}

func (*summed) Backward(c *Call, dx, dy tensor.Matrix) {
	if !dx.None() {
		c.Device.AggregateBack(dx, &c.Block.CSR, tensor.Matrix{}, dy, tensor.Sum, false)
	}
}
