package nn

import (
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// rgcn is the relational convolution of Schlichtkrull et al. (2018): for each relation, the mean of
// the sources of a vertex' in-edges times a weight of that relation, and the vertex' own row times
// another. With bases, the weights of relations are combinations of a few, so that relations with
// few edges share what they learn.
//
// The means of all relations lie side by side, so that one aggregation and one product compute all
// of them, on any device. Price: relations times the width of the rows for each target.
type rgcn struct{ in, out, relations, bases int }

// newRGCN returns the convolution. As many bases as relations, or more, would only be slower.
func newRGCN(s Spec, p Place) Conv {
	bases := s.Bases
	if bases >= s.Relations {
		bases = 0
	}
	return &rgcn{in: p.In, out: p.Out, relations: max(1, s.Relations), bases: bases}
}

// The places of its weights.
const (
	rgcnWeight = iota // of all relations one below another, or of the bases
	rgcnRoot
	rgcnBias
	rgcnShares // of each basis in the weight of each relation
)

func (l *rgcn) Weights() []Weight {
	own := []Weight{
		{"weight", l.relations * l.in, l.out, Glorot(l.in, l.out)},
		{"root.weight", l.in, l.out, Glorot(l.in, l.out)},
		{Bias, 1, l.out, Zeros},
	}
	if l.bases > 0 {
		own[rgcnWeight] = Weight{"bases.weight", l.bases * l.in, l.out, Glorot(l.in, l.out)}
		own = append(own, Weight{"bases.shares", l.relations, l.bases, Glorot(l.relations, l.bases)})
	}
	return own
}

func (l *rgcn) Words(use func(string) string) string {
	const means = "For each relation r: a[r] = the mean of x of the sources of a vertex' in-edges of that relation, 0 where it has none. "
	if l.bases > 0 {
		return means + "W[r] = the sum over b of " + use("bases.shares") + "[r, b] * B[b], where B[b] are the matrices that stand one below another in " + use("bases.weight") +
			". y = the sum of a[r] * W[r] over all relations + x * " + use("root.weight") + ", x being the vertex' own row."
	}
	return means + "y = the sum of a[r] * W[r] over all relations + x * " + use("root.weight") + ", where W[r] are the matrices that stand one below another in " + use("weight") +
		" and x is the vertex' own row."
}

// related returns the block by relation. One that is only counted has no arrays.
func (l *rgcn) related(c *Call) *tensor.CSR {
	if c.Block.Related != nil {
		return c.Block.Related
	}
	return &tensor.CSR{Rows: c.Block.Rows * l.relations, Cols: c.Block.Cols, There: &tensor.There{Entries: c.Block.Entries()}}
}

// square returns a matrix that has a row for each of n weights.
func (l *rgcn) square(w tensor.Matrix, n int) tensor.Matrix { return w.Reshape(n, l.in*l.out) }

func (l *rgcn) Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	none, w := tensor.Matrix{}, c.Weight(rgcnWeight)
	if l.bases > 0 {
		bases := l.square(w, l.bases)
		w = c.New(l.relations*l.in, l.out)
		c.Device.MatMul(l.square(w, l.relations), c.Weight(rgcnShares), bases, tensor.NN, false, nil)
	}
	means := c.New(c.targets*l.relations, l.in)
	c.Device.Aggregate(means, l.related(c), none, c.X(), tensor.Mean, false, nil)
	c.MulOwn(y, c.Weight(rgcnRoot), false, nil)
	c.Device.MatMul(y, means.Reshape(c.targets, l.relations*l.in), w, tensor.NN, true, e)
	c.Kept[0], c.Kept[1] = means, w
}

func (l *rgcn) Backward(c *Call, dx, dy tensor.Matrix) {
	none, means, w := tensor.Matrix{}, c.Kept[0].Reshape(c.targets, l.relations*l.in), c.Kept[1]
	if l.bases == 0 {
		c.Device.MatMul(c.Gradient(rgcnWeight), means, dy, tensor.TN, true, nil)
	} else {
		dw := c.New(l.relations*l.in, l.out)
		c.Device.MatMul(dw, means, dy, tensor.TN, false, nil)
		each, bases := l.square(dw, l.relations), l.square(c.Weight(rgcnWeight), l.bases)
		c.Device.MatMul(l.square(c.Gradient(rgcnWeight), l.bases), c.Weight(rgcnShares), each, tensor.TN, true, nil)
		c.Device.MatMul(c.Gradient(rgcnShares), each, bases, tensor.NT, true, nil)
		c.Free(dw)
	}
	if !dx.None() {
		dmeans := c.New(c.targets, l.relations*l.in)
		c.Device.MatMul(dmeans, dy, w, tensor.NT, false, nil)
		c.Device.AggregateBack(dx, l.related(c), none, dmeans.Reshape(c.targets*l.relations, l.in), tensor.Mean, false)
		c.Free(dmeans)
	}
	c.MulOwnBack(dx, c.Gradient(rgcnRoot), dy, c.Weight(rgcnRoot))
}
