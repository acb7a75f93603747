package nn

import "github.com/hopmesh/hopmesh/engine/tensor"

// gcn is the convolution of Kipf and Welling: A*X*W, where A holds the block's values.
type gcn struct {
	aggregated
	in, out int
}

func newGCN(_ Spec, p Place) Conv { return &gcn{in: p.In, out: p.Out} }

func (l *gcn) Weights() []Weight {
	return []Weight{
		{"weight", l.in, l.out, Glorot(l.in, l.out)},
		{Bias, 1, l.out, Zeros},
	}
}

func (l *gcn) Words(use func(string) string) string {
	return "z = x * " + use("weight") + ". y of a vertex = the sum of value * z of the source over its in-edges."
}

func (l *gcn) Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	c.Along(0, y, c.Weight(0), tensor.Sum, false, e)
}

func (l *gcn) carries(c *Call) int { return c.alongCarries(l.in, l.out) }

func (l *gcn) carry(c *Call, to tensor.Matrix) { c.Mul(to, c.Weight(0), false, nil) }

func (l *gcn) readsOwn() bool { return false }

func (l *gcn) Backward(c *Call, dx, dy tensor.Matrix) {
	c.AlongBack(0, dx, c.Gradient(0), dy, c.Weight(0), tensor.Sum)
}

func (l *gcn) front() ([]frontTerm, int) {
	return []frontTerm{{weight: 0, edges: true, how: tensor.Sum}}, l.out
}
