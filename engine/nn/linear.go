package nn

import "github.com/hopmesh/hopmesh/engine/tensor"

// linear is the product of each row with a weight: an mlp's layer, an encoder or a head.
// It takes no block.
type linear struct {
	aggregated
	in, out int
}

func newLinear(_ Spec, p Place) Conv { return &linear{in: p.In, out: p.Out} }

func (l *linear) Weights() []Weight {
	return []Weight{
		{"weight", l.in, l.out, Fan(l.in)},
		{Bias, 1, l.out, Fan(l.in)},
	}
}

func (l *linear) Words(use func(string) string) string { return "y = x * " + use("weight") + "." }

func (l *linear) Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	c.Mul(y, c.Weight(0), false, e)
}

func (l *linear) Backward(c *Call, dx, dy tensor.Matrix) {
	c.MulBack(dx, c.Gradient(0), dy, c.Weight(0))
}

func (l *linear) front() ([]frontTerm, int) { return []frontTerm{{weight: 0, own: 1}}, l.out }
