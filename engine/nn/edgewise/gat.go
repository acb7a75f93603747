package edgewise

import (
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// gat is the convolution of Velickovic et al. with one more term in the score of an edge: the
// product of its features, by a weight of their own, with a vector of each head.
//
// Attention has a term for each source, so entries stand for sources here, each with a copy of
// its source's row.
type gat struct {
	nn.Heads
	in, edges int
	bias      []nn.Weight
}

func newGAT(s nn.Spec, p nn.Place) nn.Conv {
	l := &gat{Heads: nn.NewHeads(s, p), in: p.In, edges: s.EdgeFeatures}
	if l.Biased {
		l.bias = []nn.Weight{{Name: nn.Bias, Rows: 1, Cols: p.Out, Initial: nn.Zeros}}
	}
	return l
}

// The places of its weights, and of what is kept.
const (
	gatWeight = iota
	gatSource
	gatTarget
	gatEdges
	gatEdge

	gatRows  = iota - gatEdge - 1 // features of edges
	gatX                          // products of the sources
	gatEach                       // those of each entry's source
	gatLeft                       // terms of entries in scores
	gatRight                      // and of targets
	gatStats
)

func (l *gat) Weights() []nn.Weight {
	n := l.Columns()
	return append([]nn.Weight{
		{Name: "weight", Rows: l.in, Cols: n, Initial: nn.Glorot(l.in, n)},
		{Name: "attention.source", Rows: 1, Cols: n, Initial: nn.Glorot(l.Count, l.Width)},
		{Name: "attention.target", Rows: 1, Cols: n, Initial: nn.Glorot(l.Count, l.Width)},
		{Name: "edges.weight", Rows: l.edges, Cols: n, Initial: nn.Glorot(l.edges, n)},
		{Name: "attention.edge", Rows: 1, Cols: n, Initial: nn.Glorot(l.Count, l.Width)},
	}, l.bias...)
}

func (l *gat) Words(use func(string) string) string {
	return "z = x * " + use("weight") + ": " + l.Divided() + ". The score of an edge (u, v) in a head = leaky(z(u) . " + use("attention.source") + " + z(v) . " + use("attention.target") +
		" + (e * " + use("edges.weight") + ") . " + use("attention.edge") + "), the products being those of the head's columns." + l.InWords()
}

// drop is the dropout of attention, whose sources are entries.
func (l *gat) drop(c *nn.Call, vertices []uint32) tensor.Dropout {
	d := c.DropAttention(l.Dropout)
	if d.P > 0 {
		d.Vertices = vertices
	}
	return d
}

func (l *gat) Forward(c *nn.Call, y tensor.Matrix, e *tensor.Epilogue) {
	none := tensor.Matrix{}
	a, rows := entries(c, l.edges)
	n := a.Sources.Rows
	x, each, left, right := c.New(c.Sources(), l.Columns()), c.New(n, l.Columns()), c.New(n, l.Count), c.New(c.Targets(), l.Count)
	c.Mul(x, c.Weight(gatWeight), false, nil)
	c.Device.Aggregate(each, &a.Sources, none, x, tensor.Sum, false, nil)
	// The terms of edges are products with one column for each head.
	heads, source := c.New(l.edges, l.Count), c.New(c.Sources(), l.Count)
	c.Device.HeadDot(heads, c.Weight(gatEdges), c.Weight(gatEdge))
	c.Device.MatMul(left, rows, heads, tensor.NN, false, nil)
	c.Device.HeadDot(source, x, c.Weight(gatSource))
	c.Device.Aggregate(left, &a.Sources, none, source, tensor.Sum, true, nil)
	c.Device.HeadDot(right, c.Own(x), c.Weight(gatTarget))
	c.Free(heads, source)
	all, stats := l.Attended(c, y), c.New(c.Targets(), 2*l.Count)
	c.Device.Attend(all, stats, &a.Targets, each, left, right, nn.Slope, l.drop(c, a.Vertices), n)
	l.Join(c, y, all, e)
	c.Kept[gatRows], c.Kept[gatX], c.Kept[gatEach], c.Kept[gatLeft], c.Kept[gatRight], c.Kept[gatStats] = rows, x, each, left, right, stats
}

func (l *gat) Backward(c *nn.Call, dx, dy tensor.Matrix) {
	none, a := tensor.Matrix{}, c.Block.EntriesAlong(l.edges)
	rows, x, each, left, right, stats := c.Kept[gatRows], c.Kept[gatX], c.Kept[gatEach], c.Kept[gatLeft], c.Kept[gatRight], c.Kept[gatStats]
	n := a.Sources.Rows
	deach, dleft, dright := c.New(n, l.Columns()), c.New(n, l.Count), c.New(c.Targets(), l.Count)
	dall := l.Spread(c, dy)
	c.Device.AttendBack(deach, dleft, dright, &a.Targets, dall, stats, each, left, right, nn.Slope, l.drop(c, a.Vertices), n)
	l.Freed(c, dall)
	dh, dsource, dheads := c.New(c.Sources(), l.Columns()), c.New(c.Sources(), l.Count), c.New(l.edges, l.Count)
	c.Device.AggregateBack(dh, &a.Sources, none, deach, tensor.Sum, false)
	c.Device.AggregateBack(dsource, &a.Sources, none, dleft, tensor.Sum, false)
	c.Device.HeadDotBack(dh, c.Gradient(gatSource), dsource, x, c.Weight(gatSource))
	c.Device.HeadDotBack(c.Own(dh), c.Gradient(gatTarget), dright, c.Own(x), c.Weight(gatTarget))
	c.Device.MatMul(dheads, rows, dleft, tensor.TN, false, nil)
	c.Device.HeadDotBack(c.Gradient(gatEdges), c.Gradient(gatEdge), dheads, c.Weight(gatEdges), c.Weight(gatEdge))
	c.MulBack(dx, c.Gradient(gatWeight), dh, c.Weight(gatWeight))
	c.Free(deach, dleft, dright, dh, dsource, dheads)
}
