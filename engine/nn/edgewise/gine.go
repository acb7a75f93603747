package edgewise

import (
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// gine is the convolution of Hu et al. (2020): that of gin, with max(x of the source + the edge's
// features times a weight + bias, 0) in place of the source's row.
type gine struct{ in, inner, out, edges int }

func newGINE(s nn.Spec, p nn.Place) nn.Conv { return &gine{p.In, s.Hidden, p.Out, s.EdgeFeatures} }

// The places of its weights, and of what is kept.
const (
	gineInner = iota
	gineInnerBias
	gineWeight
	gineBias
	gineEdges
	gineEdgesBias

	gineRows     = iota - gineEdgesBias - 1 // features of edges
	gineMessages                            // of edges
	gineSums
	gineHidden
)

func (l *gine) Weights() []nn.Weight {
	return []nn.Weight{
		{Name: "inner.weight", Rows: l.in, Cols: l.inner, Initial: nn.Fan(l.in)},
		{Name: "inner.bias", Rows: 1, Cols: l.inner, Initial: nn.Fan(l.in)},
		{Name: "weight", Rows: l.inner, Cols: l.out, Initial: nn.Fan(l.inner)},
		{Name: nn.Bias, Rows: 1, Cols: l.out, Initial: nn.Fan(l.inner)},
		{Name: "edges.weight", Rows: l.edges, Cols: l.in, Initial: nn.Fan(l.edges)},
		{Name: "edges.bias", Rows: 1, Cols: l.in, Initial: nn.Fan(l.edges)},
	}
}

func (l *gine) Words(use func(string) string) string {
	return "m of an edge = max(x of its source + e * " + use("edges.weight") + " + " + use("edges.bias") + ", 0) (ReLU). " +
		"a of a vertex = its own x + the sum of value * m over its in-edges. h = a * " + use("inner.weight") + " + " + use("inner.bias") +
		". h = max(h, 0) (ReLU). y = h * " + use("weight") + "."
}

func (l *gine) Forward(c *nn.Call, y tensor.Matrix, e *tensor.Epilogue) {
	none := tensor.Matrix{}
	a, rows := entries(c, l.edges)
	messages := c.New(rows.Rows, l.in)
	c.Device.MatMul(messages, rows, c.Weight(gineEdges), tensor.NN, false, nil)
	c.Device.Aggregate(messages, &a.Sources, none, c.X(), tensor.Sum, true, relu(c, c.Weight(gineEdgesBias)))
	sums, hidden := c.New(c.Targets(), l.in), c.New(c.Targets(), l.inner)
	c.Device.Combine(sums, 1, c.Own(c.X()), 0, none)
	c.Device.Aggregate(sums, &a.Targets, none, messages, tensor.Sum, true, nil)
	c.Device.MatMul(hidden, sums, c.Weight(gineInner), tensor.NN, false, relu(c, c.Weight(gineInnerBias)))
	c.Device.MatMul(y, hidden, c.Weight(gineWeight), tensor.NN, false, e)
	c.Kept[gineRows], c.Kept[gineMessages], c.Kept[gineSums], c.Kept[gineHidden] = rows, messages, sums, hidden
}

func (l *gine) Backward(c *nn.Call, dx, dy tensor.Matrix) {
	none, a := tensor.Matrix{}, c.Block.EntriesAlong(l.edges)
	rows, messages, sums, hidden := c.Kept[gineRows], c.Kept[gineMessages], c.Kept[gineSums], c.Kept[gineHidden]
	c.Device.MatMul(c.Gradient(gineWeight), hidden, dy, tensor.TN, true, nil)
	dhidden, dsums := c.New(c.Targets(), l.inner), c.New(c.Targets(), l.in)
	c.Device.MatMul(dhidden, dy, c.Weight(gineWeight), tensor.NT, false, nil)
	c.Device.ApplyBack(dhidden, c.Gradient(gineInnerBias), dhidden, hidden, relu(c, c.Weight(gineInnerBias)))
	c.Device.MatMul(c.Gradient(gineInner), sums, dhidden, tensor.TN, true, nil)
	c.Device.MatMul(dsums, dhidden, c.Weight(gineInner), tensor.NT, false, nil)
	dmessages := c.New(rows.Rows, l.in)
	c.Device.AggregateBack(dmessages, &a.Targets, none, dsums, tensor.Sum, false)
	c.Device.ApplyBack(dmessages, c.Gradient(gineEdgesBias), dmessages, messages, relu(c, c.Weight(gineEdgesBias)))
	c.Device.MatMul(c.Gradient(gineEdges), rows, dmessages, tensor.TN, true, nil)
	if !dx.None() {
		c.Device.AggregateBack(dx, &a.Sources, none, dmessages, tensor.Sum, false)
		c.Device.Combine(c.Own(dx), 1, c.Own(dx), 1, dsums)
	}
	c.Free(dhidden, dsums, dmessages)
}
