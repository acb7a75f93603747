package nn

import "github.com/hopmesh/hopmesh/engine/tensor"

// sage is GraphSAGE: the neighbours' mean or columnwise maximum times one weight, plus
// the vertex's own row times another.
type sage struct {
	aggregated
	in, out int
	max     bool
}

func newSAGE(s Spec, p Place) Conv {
	switch s.Aggregator {
	case "gcn":
		return newAveraged(p, true)
	case "max":
		return &sage{in: p.In, out: p.Out, max: true}
	}
	return newMean(s, p)
}

// newMean returns the convolution with the aggregator mean, for kinds that have no other.
func newMean(_ Spec, p Place) Conv { return &sage{in: p.In, out: p.Out} }

func (l *sage) Weights() []Weight {
	return []Weight{
		{"weight", l.in, l.out, Fan(l.in)},
		{"root.weight", l.in, l.out, Fan(l.in)},
		{Bias, 1, l.out, Fan(l.in)},
	}
}

func (l *sage) Words(use func(string) string) string {
	how := "the mean of x of the sources of a vertex' in-edges"
	if l.max {
		how = "in each column, the largest x of the sources of a vertex' in-edges"
	}
	return "a = " + how + ", 0 where it has none. y = a * " + use("weight") + " + x * " + use("root.weight") + ", x being the vertex' own row."
}

func (l *sage) Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	c.MulOwn(y, c.Weight(1), false, nil)
	if !l.max {
		c.Along(0, y, c.Weight(0), tensor.Mean, true, e)
		return
	}
	largest, which := c.New(c.Targets(), l.in), c.NewIndices(c.Targets(), l.in)
	c.Device.AggregateMax(largest, which, &c.Block.CSR, c.seen())
	c.Device.MatMul(y, largest, c.Weight(0), tensor.NN, true, e)
	c.Kept[0], c.Kept[1] = largest, which
}

func (l *sage) carries(c *Call) int {
	if l.max {
		return 0
	}
	return c.alongCarries(l.in, l.out)
}

func (l *sage) carry(c *Call, to tensor.Matrix) { c.Mul(to, c.Weight(0), false, nil) }

func (l *sage) readsOwn() bool { return true }

func (l *sage) Backward(c *Call, dx, dy tensor.Matrix) {
	if l.max {
		c.Device.MatMul(c.Gradient(0), c.Kept[0], dy, tensor.TN, true, nil)
		if !dx.None() {
			dlargest := c.New(c.Targets(), l.in)
			c.Device.MatMul(dlargest, dy, c.Weight(0), tensor.NT, false, nil)
			c.Device.AggregateMaxBack(dx, &c.Block.CSR, dlargest, c.Kept[1], false)
			c.Free(dlargest)
		}
	} else {
		c.AlongBack(0, dx, c.Gradient(0), dy, c.Weight(0), tensor.Mean)
	}
	c.MulOwnBack(dx, c.Gradient(1), dy, c.Weight(1))
}

func (l *sage) front() ([]frontTerm, int) {
	if l.max {
		return nil, 0
	}
	return []frontTerm{{weight: 0, edges: true, how: tensor.Mean}, {weight: 1, own: 1}}, l.out
}
