package nn

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Front is the part of the first layer that is linear in the features: a sum of terms,
// so that subsets of the feature columns can be computed separately and added up. What
// follows the sum (bias, activation, norm, the rest of the layer) is not linear and needs
// the whole sum.
type Front struct {
	Terms []Term
	Cols  int // of the sum
	// Sources means that the sum has a row for each source of the first block; else it has one
	// for each target.
	Sources bool
}

// A Term is one weight's contribution to the sum: rows, aggregated along the edges or the
// targets' own, times the weight.
type Term struct {
	Param Param // the weight, one row per feature column
	// Col is the first column of the sum that it adds to.
	Col int
	// Own is the factor of a row's own features. Edges reports whether the sources' rows
	// are aggregated, and How says how.
	Own   float64
	Edges bool
	How   tensor.Aggregation
}

// fronted is implemented by convolutions that begin with a front. Terms refer to weights
// by their index in Weights.
type fronted interface {
	// front returns the terms and the number of columns of their sum, or no terms if this
	// configuration has no front.
	front() (terms []frontTerm, cols int)
	// finish is the rest of Forward after the sum; finishBack returns the gradient at the
	// sum, which may be dy itself.
	finish(c *Call, y, sum tensor.Matrix, e *tensor.Epilogue)
	finishBack(c *Call, dy tensor.Matrix) tensor.Matrix
}

// weighing is implemented by those that weigh edges by products of the sources' rows: the sum of
// their front has a row for each source.
type weighing interface{ weighs() }

type frontTerm struct {
	weight int
	col    int // of the sum
	own    float64
	edges  bool
	how    tensor.Aggregation
}

// Front returns the model's front, or an error that explains why it has none.
func (m *Model) Front() (Front, error) {
	s := m.stages[0]
	var terms []frontTerm
	var cols int
	if conv, ok := s.conv.(fronted); ok {
		terms, cols = conv.front()
	}
	switch none := len(terms) == 0; {
	case s.layer < 0 || s.before:
		return Front{}, fmt.Errorf("the first layer of a %s is not linear in the features before it follows edges", m.spec.Model)
	case none && m.spec.Model == "sage":
		return Front{}, fmt.Errorf("sage.aggregator=%s takes the largest of each column and not a sum: choose mean or gcn", m.spec.Aggregator)
	case none:
		return Front{}, fmt.Errorf("the first layer of a %s is not a sum over columns of features", m.spec.Model)
	}
	f := Front{Cols: cols}
	_, f.Sources = s.conv.(weighing)
	for _, t := range terms {
		f.Terms = append(f.Terms, Term{Param: m.params[s.first+t.weight], Col: t.col, Own: t.own, Edges: t.edges, How: t.how})
	}
	if s.residual >= 0 {
		f.Terms = append(f.Terms, Term{Param: m.params[s.residual], Col: cols, Own: 1})
		f.Cols += s.info.Out
	}
	return f, nil
}

// Sums reports whether the first layer needs nothing of the block's sources but their
// aggregated features, and how they are aggregated; it may also use the targets' own
// rows. If so, the sampler may aggregate them while it draws the block (Input.Sums),
// since no gradient of them is needed.
func (m *Model) Sums() (how tensor.Aggregation, ok bool) {
	f, err := m.Front()
	if err != nil || m.spec.InputDropout > 0 {
		return 0, false
	}
	for _, t := range f.Terms {
		if t.Edges && t.Own != 0 {
			return 0, false // both in one product
		}
		if t.Edges {
			how, ok = t.How, true
		}
	}
	return how, ok
}

// InputDropout returns the dropout of these vertices' features before the first layer, by
// global feature column. Whoever computes a sum of the front applies it.
func (p *Pass) InputDropout(vertices []uint32) tensor.Dropout {
	drop := p.model.spec.InputDropout
	if !p.Train || drop == 0 {
		return tensor.Dropout{}
	}
	return tensor.Dropout{P: float32(drop), Key: p.Key.With(0).With(dropInput), Vertices: vertices}
}

// ForwardFrom is Forward with the sum of the model's Front in place of the input. The sum
// must not change until BackwardTo has returned. vertices are those of the first block's
// sources, or of the rows if there is no block.
func (p *Pass) ForwardFrom(blocks []sample.Block, vertices []uint32, sum tensor.Matrix) tensor.Matrix {
	return p.run(blocks, Input{Vertices: vertices}, sum)
}

// BackwardTo is Backward for ForwardFrom: it adds to all gradients but those of the
// Front's weights, and sets dsum to the gradient at the sum.
func (p *Pass) BackwardTo(dsum, logits tensor.Matrix) {
	p.calls[0].dsum = dsum
	p.Backward(logits)
}

// convolve runs the convolution's Forward, or the rest of it if the sum is given.
func (s *stage) convolve(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	if c.sum.None() {
		s.conv.Forward(c, y, e)
		return
	}
	conv := s.conv.(fronted)
	_, cols := conv.front()
	conv.finish(c, y, c.sum.View(0, c.sum.Rows, 0, cols), e)
}

// convolveBack is the backward pass of convolve.
func (s *stage) convolveBack(c *Call, dx, dy tensor.Matrix) {
	if c.sum.None() {
		s.conv.Backward(c, dx, dy)
		return
	}
	conv := s.conv.(fronted)
	_, cols := conv.front()
	c.Device.Combine(c.dsum.View(0, c.dsum.Rows, 0, cols), 1, conv.finishBack(c, dy), 0, tensor.Matrix{})
}

// addResidual computes y = e(y + the targets' rows times the residual map's weight).
func (s *stage) addResidual(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	if c.sum.None() {
		c.MulOwn(y, c.pass.weight(s.residual), true, e)
		return
	}
	c.Device.Combine(y, 1, y, 1, s.ownOf(c, c.sum.View(0, c.sum.Rows, c.sum.Cols-s.info.Out, s.info.Out)))
	c.Device.Apply(y, y, e)
}

// addResidualBack is its backward pass, from dy at the sum before e.
func (s *stage) addResidualBack(c *Call, dx, dy tensor.Matrix) {
	if c.sum.None() {
		c.MulOwnBack(dx, c.pass.gradient(s.residual), dy, c.pass.weight(s.residual))
		return
	}
	dsum := c.dsum.View(0, c.dsum.Rows, c.dsum.Cols-s.info.Out, s.info.Out)
	own := s.ownOf(c, dsum)
	if own.Rows < dsum.Rows {
		c.Device.Zero(dsum)
	}
	c.Device.Combine(own, 1, dy, 0, tensor.Matrix{})
}

// ownOf returns the rows of the targets in the sum of the front.
func (s *stage) ownOf(c *Call, sum tensor.Matrix) tensor.Matrix {
	if _, all := s.conv.(weighing); all {
		return c.Own(sum)
	}
	return sum
}

// aggregated is the front of a convolution that consists of a front only.
type aggregated struct{}

func (aggregated) finish(c *Call, y, sum tensor.Matrix, e *tensor.Epilogue) {
	if e == nil {
		c.Device.Combine(y, 1, sum, 0, tensor.Matrix{})
		return
	}
	c.Device.Apply(y, sum, e)
}

func (aggregated) finishBack(_ *Call, dy tensor.Matrix) tensor.Matrix { return dy }
