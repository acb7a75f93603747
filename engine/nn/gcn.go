package nn

import "github.com/hopmesh/hopmesh/engine/tensor"

// gcn is the convolution of Kipf and Welling: A*X*W, where A holds the block's values.
type gcn struct {
	aggregated
	in, out int
	how     tensor.Aggregation
}

func newGCN(_ Spec, p Place) Conv { return &gcn{in: p.In, out: p.Out, how: tensor.Sum} }

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
	c.Along(0, y, c.Weight(0), l.how, false, e)
}

func (l *gcn) carries(c *Call) int { return c.alongCarries(l.in, l.out) }

func (l *gcn) carry(c *Call, to tensor.Matrix) { c.Mul(to, c.Weight(0), false, nil) }

func (l *gcn) readsOwn() bool { return false }

func (l *gcn) Backward(c *Call, dx, dy tensor.Matrix) {
	c.AlongBack(0, dx, c.Gradient(0), dy, c.Weight(0), l.how)
}

func (l *gcn) front() ([]frontTerm, int) {
	return []frontTerm{{weight: 0, edges: true, how: l.how}}, l.out
}

// averaged is a gcn that takes the mean over a vertex' in-edges: GraphSAGE with the aggregator gcn,
// where one of them is its self-loop, or the convolution of one relation.
type averaged struct {
	gcn
	sage bool
}

func newAveraged(p Place, sage bool) Conv {
	return &averaged{gcn{in: p.In, out: p.Out, how: tensor.Mean}, sage}
}

func (l *averaged) Weights() []Weight {
	if l.sage {
		return []Weight{{"weight", l.in, l.out, Fan(l.in)}, {Bias, 1, l.out, Fan(l.in)}}
	}
	return l.gcn.Weights()
}

func (l *averaged) Words(use func(string) string) string {
	if l.sage {
		return "a = the mean of x of the sources of a vertex' in-edges, itself among them. y = a * " + use("weight") + "."
	}
	return "z = x * " + use("weight") + ". y of a vertex = the mean of z of the sources of its in-edges, 0 where it has none."
}
