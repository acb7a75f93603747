package nn

import (
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A stage with a block can run without dropout in two steps, each over parts of any size:
//
//	Carry  computes what edges carry of some sources, each by itself,
//	Sum    computes the rows of some targets from what edges carry of all sources.
//
// Together they give the bits of Stage. So a source's row is multiplied once, however many
// parts its edges lead to, and what edges carry can lie where there is room for it.

// A Division says what the two steps of a stage exchange.
type Division struct {
	// Carried is how many columns edges carry of each source; 0: its rows as they enter the
	// stage.
	Carried int
	// Own reports whether Sum reads the rows of its targets as they enter the stage.
	Own bool
}

// divided is implemented by convolutions that can run in two steps. Where the input's carried is
// set, Forward does the second step, and has no rows of sources.
type divided interface {
	// carries returns how many columns edges carry; 0: the rows that the convolution sees.
	carries(c *Call) int
	// carry computes them of all sources.
	carry(c *Call, to tensor.Matrix)
	// readsOwn reports whether Forward reads the rows of the targets that it sees.
	readsOwn() bool
}

// Carry returns what edges carry of sources with these rows, which are in for the first
// stage. It is called only if Divide returns a number of columns.
func (p *Pass) Carry(stage int, in Input, x tensor.Matrix) tensor.Matrix {
	c := p.single(stage, nil, in, x)
	train := p.Train
	p.Train = false
	c.stage.enter(c)
	p.Train = train
	conv := c.stage.conv.(divided)
	n := conv.carries(c)
	if n == 0 {
		return c.X()
	}
	to := c.New(c.sources, n)
	conv.carry(c, to)
	return to
}

// Sum returns the rows of the block's targets after a stage, and what is carried beside
// them. carried is what edges carry of the block's sources. x (in, for the first stage)
// and beside belong to the targets. If Division.Own is false, x and in may be without rows;
// in.Sparse is there nevertheless where features are sparse.
func (p *Pass) Sum(stage int, block *sample.Block, in Input, x, carried, beside tensor.Matrix) (y, next tensor.Matrix) {
	c := p.single(stage, nil, in, x)
	c.Block, c.input.carried = block, carried
	c.sources, c.targets = block.Rows, block.Rows
	return p.finish(c, beside, c.input.count() > 0)
}
