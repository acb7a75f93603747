package nn

import (
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// rgcn is the relational convolution of Schlichtkrull et al. (2018): for each relation, the mean of
// the sources of a vertex' in-edges times a weight of that relation, and the vertex' own row times
// another. With bases, the weights of relations are combinations of a few, so that relations with
// few edges share what they learn.
//
// Only pairs of a relation and a target that have edges have a row (sample.Related), relation by
// relation: one aggregation computes the means of all of them, one product for each relation
// multiplies its rows, and another aggregation adds up the rows of each target. So no device has an
// operation for it. Memory is that of as many pairs as a block of the size can have, so that it can
// be forecast; the rows beyond those that there are stay untouched.
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
func (l *rgcn) related(c *Call) *sample.Related {
	if c.Block.Related != nil {
		return c.Block.Related
	}
	n := l.most(c)
	return &sample.Related{
		CSR:   tensor.CSR{Rows: n, Cols: c.Block.Cols, There: &tensor.There{Entries: c.Block.Entries()}},
		Pairs: tensor.CSR{Rows: c.targets, Cols: n, There: &tensor.There{Entries: n}},
	}
}

// most returns for how many pairs there is memory.
func (l *rgcn) most(c *Call) int {
	return sample.Size{Targets: c.targets, Entries: c.Block.Entries()}.PairsAtMost(l.relations)
}

// square returns a matrix that has a row for each of n weights.
func (l *rgcn) square(w tensor.Matrix, n int) tensor.Matrix { return w.Reshape(n, l.in*l.out) }

// weightOf returns the weight of a relation, among those of all.
func (l *rgcn) weightOf(w tensor.Matrix, relation int) tensor.Matrix {
	return w.RowRange(relation*l.in, l.in)
}

// each calls do with the relations that have rows, and with these.
func each(r *sample.Related, do func(relation, first, rows int)) {
	for i := range len(r.First) - 1 {
		if n := r.First[i+1] - r.First[i]; n > 0 {
			do(i, r.First[i], n)
		}
	}
}

func (l *rgcn) Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	none, w, r, most := tensor.Matrix{}, c.Weight(rgcnWeight), l.related(c), l.most(c)
	if l.bases > 0 {
		bases := l.square(w, l.bases)
		w = c.New(l.relations*l.in, l.out)
		c.Device.MatMul(l.square(w, l.relations), c.Weight(rgcnShares), bases, tensor.NN, false, nil)
	}
	x, z := c.X(), c.New(most, l.out)
	means, both := c.New(most, x.Cols), newMapped(c, l.out)
	apart := c.input.mapped != nil && r.Columns != nil
	if !apart {
		c.Device.Aggregate(means.RowRange(0, r.Rows), &r.CSR, none, x, tensor.Mean, false, nil)
	}
	each(r, func(relation, first, rows int) {
		of := featuresOf(c, relation, x.Cols)
		some := means.View(first, rows, of.First, of.Count)
		if apart {
			c.Device.Aggregate(some, &r.Each[relation], none, x.View(0, x.Rows, of.First, of.Count), tensor.Mean, false, nil)
		}
		mulMapped(c, z.RowRange(first, rows), some, l.weightOf(w, relation), both, of)
	})
	mulMapped(c, y, c.Own(x), c.Weight(rgcnRoot), both, featuresOf(c, -1, x.Cols))
	c.Device.Aggregate(y, &r.Pairs, none, z.RowRange(0, r.Rows), tensor.Sum, true, e)
	c.Free(z, both)
	c.Kept[0], c.Kept[1] = means, w
}

func (l *rgcn) Backward(c *Call, dx, dy tensor.Matrix) {
	none, means, w, r, most := tensor.Matrix{}, c.Kept[0], c.Kept[1], l.related(c), l.most(c)
	dz := c.New(most, l.out)
	c.Device.AggregateBack(dz.RowRange(0, r.Rows), &r.Pairs, none, dy, tensor.Sum, false)
	dw := c.Gradient(rgcnWeight)
	if l.bases > 0 {
		dw = c.New(l.relations*l.in, l.out)
		c.Device.Zero(dw)
	}
	x, both := c.X(), newMapped(c, l.out)
	mulMappedBack(c, c.Gradient(rgcnRoot), c.Own(x), dy, c.Weight(rgcnRoot), both, featuresOf(c, -1, x.Cols))
	each(r, func(relation, first, rows int) {
		of := featuresOf(c, relation, x.Cols)
		mulMappedBack(c, l.weightOf(dw, relation), means.View(first, rows, of.First, of.Count), dz.RowRange(first, rows), l.weightOf(w, relation), both, of)
	})
	if l.bases > 0 {
		each, bases := l.square(dw, l.relations), l.square(c.Weight(rgcnWeight), l.bases)
		c.Device.MatMul(l.square(c.Gradient(rgcnWeight), l.bases), c.Weight(rgcnShares), each, tensor.TN, true, nil)
		c.Device.MatMul(c.Gradient(rgcnShares), each, bases, tensor.NT, true, nil)
		c.Free(dw)
	}
	if !dx.None() {
		dmeans := c.New(most, l.in)
		each(r, func(relation, first, rows int) {
			c.Device.MatMul(dmeans.RowRange(first, rows), dz.RowRange(first, rows), l.weightOf(w, relation), tensor.NT, false, nil)
		})
		c.Device.AggregateBack(dx, &r.CSR, none, dmeans.RowRange(0, r.Rows), tensor.Mean, false)
		c.Free(dmeans)
	}
	c.Free(dz, both)
	if !dx.None() {
		c.Device.MatMul(c.Own(dx), dy, c.Weight(rgcnRoot), tensor.NT, true, nil)
	}
}
