package nn

import (
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// An rgcn stands behind a linear map of the features, and begins with means of rows. The mean of
// mapped rows is the mapped mean. So where a block has many more sources than targets, means are
// those of features, which are multiplied by one weight that is the product of both: nothing is
// computed for a source by itself, neither forward nor back.
//
// Whether that is so depends on the sizes of the block alone, so that memory can be forecast, and the
// same grain is computed alike wherever it is.

// foldsAtLeast is how many sources a block has for each target, at least, whose rows are not mapped.
const foldsAtLeast = 4

// folds reports whether a pass over this block and input does not map the rows of sources before it
// adds them up.
func folds(m *Model, b *sample.Block, in *rows) bool {
	if in.sparse != nil || !in.sums.None() || in.matrix.None() {
		return false
	}
	least, can := foldsFrom(m, b.Rows)
	return can && least <= b.Cols
}

// foldsFrom returns from how many sources on the rows of a block with so many targets are not mapped, if
// the model can do so at all.
func foldsFrom(m *Model, targets int) (sources int, can bool) {
	if len(m.stages) < 2 || m.inputs {
		return 0, false
	}
	first, s := m.stages[0], m.stages[1]
	conv, ok := s.conv.(*rgcn)
	if _, linear := first.conv.(*linear); !ok || !linear || !s.apart() || first.activate != tensor.Linear || first.drop > 0 {
		return 0, false
	}
	// The products of weights, forward and back, are as many multiplications as those of so many rows.
	return foldsAtLeast * (targets + conv.relations*conv.out), true
}

// folding is by which share the sources for each target may differ from those of a batch that was
// looked at.
const folding = 0.1

// beyond returns the sizes of the largest batch, no larger than one of these sizes by much, that a pass
// computes the other way: of the two ways, either may take several times the memory of the other. It
// returns nil if there is no such batch. Others have about as many sources for each target as
// this one: a smaller one maps them, as there are fewer for the products of weights.
func beyond(m *Model, in InputSize, blocks []Size) (InputSize, []Size) {
	if in.Sparse || len(blocks) == 0 {
		return in, nil
	}
	b := blocks[0]
	least, can := foldsFrom(m, b.Targets)
	if !can {
		return in, nil
	}
	others := slices.Clone(blocks)
	if b.Sources < least {
		if float64(b.Sources)*(1+folding) < float64(least) {
			return in, nil
		}
		in.Rows, others[0].Sources = least, least
		return in, others
	}
	// The sizes are multiplied by the share at which a batch is too small.
	share, weights := 1.0, least-foldsAtLeast*b.Targets
	if more := float64(b.Sources)*(1-folding) - foldsAtLeast*float64(b.Targets); more > 0 {
		share = min(1, float64(weights)/more)
	}
	of := func(n int) int { return int(math.Ceil(share * float64(n))) }
	for i, z := range blocks {
		others[i] = Size{Targets: of(z.Targets), Sources: of(z.Sources), Entries: of(z.Entries)}
	}
	least, _ = foldsFrom(m, others[0].Targets)
	in.Rows = min(others[0].Sources, least-1)
	others[0].Sources = in.Rows
	return in, others
}

// mapping returns the weight of a linear map with its bias as a last row, in the row of all weights
// or of all gradients.
func mapping(c *Call, all tensor.Matrix) tensor.Matrix {
	s, p := c.input.mapped, c.pass.model.params
	w := &p[s.first]
	return all.View(0, 1, w.Offset, (w.Rows+1)*w.Cols).Reshape(w.Rows+1, w.Cols)
}

// newMapped returns memory for a weight of so many columns behind the map, multiplied by it, that all
// products of a pass in one direction share; an empty matrix if rows have been through the map.
func newMapped(c *Call, columns int) tensor.Matrix {
	if c.input.mapped == nil {
		return tensor.Matrix{}
	}
	return c.New(mapping(c, c.pass.Weights).Rows, columns)
}

// mulMapped computes y = x*w for rows that have been through the map, or have yet to. The latter have
// the features of a range, and all others are zeros.
func mulMapped(c *Call, y, x, w, both tensor.Matrix, of graph.FeatureRange) {
	if c.input.mapped == nil {
		c.Device.MatMul(y, x, w, tensor.NN, false, nil)
		return
	}
	m := mapping(c, c.pass.Weights)
	bias := both.RowRange(m.Rows-1, 1)
	c.Device.MatMul(both.RowRange(of.First, of.Count), m.RowRange(of.First, of.Count), w, tensor.NN, false, nil)
	c.Device.MatMul(bias, m.RowRange(m.Rows-1, 1), w, tensor.NN, false, nil)
	c.Device.MatMul(y, x, both.RowRange(of.First, of.Count), tensor.NN, false, c.Epilogue(tensor.Epilogue{Bias: bias}))
}

// mulMappedBack adds to dw, and to the gradients of the map, given dy.
func mulMappedBack(c *Call, dw, x, dy, w, both tensor.Matrix, of graph.FeatureRange) {
	if c.input.mapped == nil {
		c.Device.MatMul(dw, x, dy, tensor.TN, true, nil)
		return
	}
	m, dm := mapping(c, c.pass.Weights), mapping(c, c.pass.Gradients)
	some, bias := both.RowRange(of.First, of.Count), both.RowRange(m.Rows-1, 1)
	c.Device.MatMul(some, x, dy, tensor.TN, false, nil)
	c.Device.Zero(bias)
	c.Device.ColumnSums(bias, dy)
	c.Device.MatMul(dw, m.RowRange(of.First, of.Count), some, tensor.TN, true, nil)
	c.Device.MatMul(dw, m.RowRange(m.Rows-1, 1), bias, tensor.TN, true, nil)
	c.Device.MatMul(dm.RowRange(of.First, of.Count), some, w, tensor.NT, true, nil)
	c.Device.MatMul(dm.RowRange(m.Rows-1, 1), bias, w, tensor.NT, true, nil)
}

// featuresOf returns which features the sources of a relation have; all columns of other rows.
func featuresOf(c *Call, relation, columns int) graph.FeatureRange {
	if r := c.Block.Related; c.input.mapped != nil && r != nil && r.Columns != nil && relation >= 0 {
		return r.Columns[relation]
	}
	return graph.FeatureRange{Count: columns}
}
