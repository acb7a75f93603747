package edgewise

import (
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// mpnn passes messages in the plainest form of Gilmer et al. (2017): the message of an edge is a
// linear map of its source's row beside its features, with ReLU, and a vertex' new row is a linear
// map of its own row beside the mean, or the sum, of its messages.
type mpnn struct {
	in, out, edges int
	how            tensor.Aggregation
}

func newMPNN(s nn.Spec, p nn.Place) nn.Conv {
	l := &mpnn{in: p.In, out: p.Out, edges: s.EdgeFeatures, how: tensor.Mean}
	if s.Aggregator == "sum" {
		l.how = tensor.Sum
	}
	return l
}

// The places of its weights, and of what is kept.
const (
	mpnnMessage = iota
	mpnnMessageBias
	mpnnUpdate
	mpnnBias

	mpnnRows     = iota - mpnnBias - 1 // features of edges
	mpnnMessages                       // of edges
	mpnnMeans                          // of messages
)

func (l *mpnn) Weights() []nn.Weight {
	return []nn.Weight{
		{Name: "message.weight", Rows: l.in + l.edges, Cols: l.out, Initial: nn.Glorot(l.in+l.edges, l.out)},
		{Name: "message.bias", Rows: 1, Cols: l.out, Initial: nn.Zeros},
		{Name: "weight", Rows: l.in + l.out, Cols: l.out, Initial: nn.Glorot(l.in+l.out, l.out)},
		{Name: nn.Bias, Rows: 1, Cols: l.out, Initial: nn.Zeros},
	}
}

func (l *mpnn) Words(use func(string) string) string {
	beside, what := "", "mean"
	if l.edges > 0 {
		beside = " beside its e"
	}
	over := "m over its in-edges, 0 where there are none"
	if l.how == tensor.Sum {
		what, over = "sum", "value * m over its in-edges"
	}
	return "m of an edge = max((x of its source" + beside + ") * " + use("message.weight") + " + " + use("message.bias") + ", 0) (ReLU). " +
		"a of a vertex = the " + what + " of " + over + ". y = (its own x beside a) * " + use("weight") + "."
}

// both returns the two parts of a weight: of vertices' rows, and of what stands beside them.
func (l *mpnn) both(w tensor.Matrix) (own, beside tensor.Matrix) {
	return w.RowRange(0, l.in), w.RowRange(l.in, w.Rows-l.in)
}

func (l *mpnn) Forward(c *nn.Call, y tensor.Matrix, e *tensor.Epilogue) {
	none := tensor.Matrix{}
	a, rows := entries(c, l.edges)
	source, edge := l.both(c.Weight(mpnnMessage))
	own, received := l.both(c.Weight(mpnnUpdate))
	product, messages, means := c.New(c.Sources(), l.out), c.New(a.Sources.Rows, l.out), c.New(c.Targets(), l.out)
	c.Mul(product, source, false, nil)
	if l.edges > 0 {
		c.Device.MatMul(messages, rows, edge, tensor.NN, false, nil)
	}
	c.Device.Aggregate(messages, &a.Sources, none, product, tensor.Sum, l.edges > 0, relu(c, c.Weight(mpnnMessageBias)))
	c.Free(product)
	c.Device.Aggregate(means, &a.Targets, none, messages, l.how, false, nil)
	c.MulOwn(y, own, false, nil)
	c.Device.MatMul(y, means, received, tensor.NN, true, e)
	c.Kept[mpnnRows], c.Kept[mpnnMessages], c.Kept[mpnnMeans] = rows, messages, means
}

func (l *mpnn) Backward(c *nn.Call, dx, dy tensor.Matrix) {
	none, a := tensor.Matrix{}, c.Block.EntriesAlong(l.edges)
	rows, messages, means := c.Kept[mpnnRows], c.Kept[mpnnMessages], c.Kept[mpnnMeans]
	source, _ := l.both(c.Weight(mpnnMessage))
	dsource, dedge := l.both(c.Gradient(mpnnMessage))
	own, received := l.both(c.Weight(mpnnUpdate))
	down, dreceived := l.both(c.Gradient(mpnnUpdate))
	c.Device.MatMul(dreceived, means, dy, tensor.TN, true, nil)
	dmeans, dmessages, dproduct := c.New(c.Targets(), l.out), c.New(messages.Rows, l.out), c.New(c.Sources(), l.out)
	c.Device.MatMul(dmeans, dy, received, tensor.NT, false, nil)
	c.Device.AggregateBack(dmessages, &a.Targets, none, dmeans, l.how, false)
	c.Device.ApplyBack(dmessages, c.Gradient(mpnnMessageBias), dmessages, messages, relu(c, c.Weight(mpnnMessageBias)))
	if l.edges > 0 {
		c.Device.MatMul(dedge, rows, dmessages, tensor.TN, true, nil)
	}
	c.Device.AggregateBack(dproduct, &a.Sources, none, dmessages, tensor.Sum, false)
	c.MulBack(dx, dsource, dproduct, source)
	c.MulOwnBack(dx, down, dy, own)
	c.Free(dmeans, dmessages, dproduct)
}
