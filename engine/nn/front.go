package nn

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Front is the part of the first layer that is linear in the features: a sum of
// terms, whose columns of features can be computed apart and added up. What follows the
// sum (bias, activation, norm, the rest of the layer) is not linear, and needs it whole.
type Front struct {
	Terms []Term
	Cols  int // of the sum; it has a row for each target of the first block
}

// A Term is what one weight adds to the sum: rows, gathered along the edges or the
// targets' own, times the weight.
type Term struct {
	Param Param // the weight: a row for each column of features
	// Col is the first of the sum's columns that it adds to.
	Col int
	// Own is how often a target's own row counts, Edges whether those of its sources do,
	// and How.
	Own   float64
	Edges bool
	How   tensor.Aggregation
}

// fronted is what a convolution has beside Forward and Backward if it begins with a
// front. Its terms name weights by their place in Weights.
type fronted interface {
	// front lists the terms and how many columns their sum has; none, if what is asked
	// of this one is no sum.
	front() (terms []frontTerm, cols int)
	// finish is Forward from the sum on; finishBack returns the gradient at the sum,
	// which may be dy itself.
	finish(c *Call, y, sum tensor.Matrix, e *tensor.Epilogue)
	finishBack(c *Call, dy tensor.Matrix) tensor.Matrix
}

type frontTerm struct {
	weight int
	own    float64
	edges  bool
	how    tensor.Aggregation
}

// Front is the model's, or a sentence on why it has none.
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
	case none && m.spec.Model == "gat":
		return Front{}, fmt.Errorf("the first layer of a gat weighs edges by what it computes of whole rows of features")
	case none && m.spec.Model == "sage":
		return Front{}, fmt.Errorf("sage.aggregator=%s takes the largest of each column and not a sum: choose mean or gcn", m.spec.Aggregator)
	case none:
		return Front{}, fmt.Errorf("the first layer of a %s is not a sum over columns of features", m.spec.Model)
	}
	f := Front{Cols: cols}
	for _, t := range terms {
		f.Terms = append(f.Terms, Term{Param: m.params[s.first+t.weight], Own: t.own, Edges: t.edges, How: t.how})
	}
	if s.residual >= 0 {
		f.Terms = append(f.Terms, Term{Param: m.params[s.residual], Col: cols, Own: 1})
		f.Cols += s.info.Out
	}
	return f, nil
}

// Sums says how the first layer adds up the features of a block's sources, if their sum
// is all that it takes of them beside its targets' own rows: whoever draws the block may
// add them up on the way (Input.Sums), since nobody wants a gradient of them.
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

// InputDropout is how the features of these vertices drop before the first layer, by
// their columns among all features: whoever computes a sum of the front sees to it.
func (p *Pass) InputDropout(vertices []uint32) tensor.Dropout {
	drop := p.model.spec.InputDropout
	if !p.Train || drop == 0 {
		return tensor.Dropout{}
	}
	return tensor.Dropout{P: float32(drop), Key: p.Key.With(0).With(dropInput), Vertices: vertices}
}

// ForwardFrom is Forward with the sum of the model's Front given, in place of the
// input: it stays as it is until BackwardTo has returned.
// vertices are those of the first block's sources, or of the rows if there is no block.
func (p *Pass) ForwardFrom(blocks []sample.Block, vertices []uint32, sum tensor.Matrix) tensor.Matrix {
	return p.run(blocks, Input{Vertices: vertices}, sum)
}

// BackwardTo is Backward for ForwardFrom: it adds to all gradients but those of the
// Front's weights, and sets dsum, which has the shape of the sum, to the gradient there.
func (p *Pass) BackwardTo(dsum, logits tensor.Matrix) {
	p.calls[0].dsum = dsum
	p.Backward(logits)
}

// convolve is the convolution's Forward, or what is left of it where the sum is given.
func (s *stage) convolve(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	if c.sum.None() {
		s.conv.Forward(c, y, e)
		return
	}
	conv := s.conv.(fronted)
	_, cols := conv.front()
	conv.finish(c, y, c.sum.View(0, c.sum.Rows, 0, cols), e)
}

// convolveBack is its Backward.
func (s *stage) convolveBack(c *Call, dx, dy tensor.Matrix) {
	if c.sum.None() {
		s.conv.Backward(c, dx, dy)
		return
	}
	conv := s.conv.(fronted)
	_, cols := conv.front()
	c.Device.Combine(c.dsum.View(0, c.dsum.Rows, 0, cols), 1, conv.finishBack(c, dy), 0, tensor.Matrix{})
}

// addResidual is y = e(y + the targets' rows times the residual map's weight).
func (s *stage) addResidual(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	if c.sum.None() {
		c.MulOwn(y, c.pass.weight(s.residual), true, e)
		return
	}
	c.Device.Combine(y, 1, y, 1, c.sum.View(0, c.sum.Rows, c.sum.Cols-s.info.Out, s.info.Out))
	c.Device.Apply(y, y, e)
}

// addResidualBack is its backward, from dy at the sum before e.
func (s *stage) addResidualBack(c *Call, dx, dy tensor.Matrix) {
	if c.sum.None() {
		c.MulOwnBack(dx, c.pass.gradient(s.residual), dy, c.pass.weight(s.residual))
		return
	}
	c.Device.Combine(c.dsum.View(0, c.dsum.Rows, c.dsum.Cols-s.info.Out, s.info.Out), 1, dy, 0, tensor.Matrix{})
}

// aggregated is the front of a convolution that is nothing else.
type aggregated struct{}

func (aggregated) finish(c *Call, y, sum tensor.Matrix, e *tensor.Epilogue) {
	if e == nil {
		c.Device.Combine(y, 1, sum, 0, tensor.Matrix{})
		return
	}
	c.Device.Apply(y, sum, e)
}

func (aggregated) finishBack(_ *Call, dy tensor.Matrix) tensor.Matrix { return dy }
