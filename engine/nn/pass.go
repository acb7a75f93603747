package nn

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// An Input is the features of the sources of the first block, dense or sparse.
type Input struct {
	Dense    tensor.Matrix
	Sparse   *tensor.CSR // with its Transposed, for backward
	Vertices []uint32    // vertices of the rows
	// Sums, if set, holds the sources' rows aggregated along the edges of the first
	// block, as Model.Sums describes. Dense then holds the rows of its targets only, with
	// all columns.
	Sums tensor.Matrix
}

// A Pass is one forward and backward pass, with its own memory. Many may run at once; a
// single Pass is not safe for concurrent use.
type Pass struct {
	Weights   tensor.Matrix // 1 x Size
	Gradients tensor.Matrix // 1 x Size, added to by Backward; empty if Backward is not called
	// Key is the key of dropout, with seed, epoch and step already absorbed. It is used
	// only if Train is set.
	Key   keyed.Key
	Train bool
	// Done, if not nil, ends Forward and Backward before their next stage once it is
	// closed.
	Done <-chan struct{}

	// Scratch, if not nil, is memory for what a pass in parts needs of the sources of one
	// block at a time: many passes may share it.
	Scratch  tensor.Arena
	borrowed tensor.Matrix

	model  *Model
	device tensor.Device
	arena  tensor.Arena
	calls  []Call // one per stage
	alone  Call   // used by Stage
	jump   jump
	reuse  reuse
	dinput tensor.Matrix // see InputGradient
}

// NewPass returns a pass whose rows lie in the arena; the caller resets it between
// passes.
func (m *Model) NewPass(d tensor.Device, a tensor.Arena) *Pass {
	return &Pass{model: m, device: d, arena: a, calls: make([]Call, len(m.stages))}
}

// weight returns weight i of the model.
func (p *Pass) weight(i int) tensor.Matrix { return p.model.params[i].of(p.Weights) }

// gradient returns the matrix that its gradient is added to.
func (p *Pass) gradient(i int) tensor.Matrix { return p.model.params[i].of(p.Gradients) }

// of returns the param's matrix in the row of all.
func (q *Param) of(row tensor.Matrix) tensor.Matrix {
	return row.View(0, 1, q.Offset, q.Rows*q.Cols).Reshape(q.Rows, q.Cols)
}

// Forward returns the logits of the targets of the last block, or of the input's rows for
// a model without hops. The blocks are in order from the input; they and the input must
// not change until Backward has returned. It returns an empty matrix if it was ended
// early.
func (p *Pass) Forward(blocks []sample.Block, in Input) tensor.Matrix {
	return p.run(blocks, in, tensor.Matrix{})
}

// run is Forward, or ForwardFrom if the sum of the model's front is given.
func (p *Pass) run(blocks []sample.Block, in Input, sum tensor.Matrix) tensor.Matrix {
	m := p.model
	if len(blocks) != m.hops {
		panic(fmt.Sprintf("nn: %d blocks for %d hops", len(blocks), m.hops))
	}
	p.reuse.count, p.dinput = 0, tensor.Matrix{}
	x, vertices, offset := rows{matrix: in.Dense, sparse: in.Sparse, sums: in.Sums}, in.Vertices, 0
	if vertices == nil && len(blocks) > 0 {
		vertices = blocks[0].Vertices
	}
	for i, s := range m.stages {
		if p.ended() {
			return tensor.Matrix{}
		}
		c := &p.calls[i]
		var b *sample.Block
		if s.info.Hops > 0 {
			b, blocks = &blocks[0], blocks[1:]
			offset += b.Own
		}
		c.begin(p, i, b, x, vertices)
		c.offset = offset
		switch {
		case i == 0 && !sum.None():
			c.given(sum, vertices)
		case i == 0:
			c.features(m.spec.InputDropout)
		}
		if m.spec.Model == "gcnii" && s.layer >= 0 {
			c.carry = p.calls[0].kept.y.RowRange(offset, c.targets)
		}
		if s.jump != JumpNone && s.jump != "" {
			return p.jump.forward(p, c)
		}
		if i == 0 && b == nil && sum.None() && len(blocks) > 0 && folds(m, &blocks[0], &c.input) {
			x = c.input
			x.mapped = s
			continue
		}
		x, vertices = rows{matrix: s.forward(c)}, c.ownVertices()
	}
	return x.matrix
}

// ended reports whether Done is closed.
func (p *Pass) ended() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// Backward adds to Gradients, given the gradient at the logits, which it may overwrite.
// If it was ended early, the gradients are invalid.
func (p *Pass) Backward(logits tensor.Matrix) {
	first, dy := tensor.Matrix{}, logits
	for i := len(p.calls) - 1; i >= 0; i-- {
		if p.ended() {
			return
		}
		c := &p.calls[i]
		s := c.stage
		switch {
		case s.jump != "":
			p.jump.backward(p, c, dy)
			continue
		case p.model.spec.Jump != JumpNone:
			dy = p.jump.into(p, c, dy)
		case p.model.spec.Model != "gcnii":
		case s.layer >= 0:
			if first.None() {
				h := p.calls[0].kept.y
				first = c.New(h.Rows, h.Cols)
				p.device.Zero(first)
			}
			c.carryGradient = first.RowRange(c.offset, c.targets)
		case i == 0:
			p.device.Combine(dy, 1, dy, 1, first)
		}
		if c.input.mapped != nil { // it goes back through that stage, too
			s.backward(c, dy, false)
			return
		}
		dx := s.backward(c, dy, i > 0 || p.model.inputs)
		if i < len(p.calls)-1 {
			c.Free(dy, c.kept.x, c.kept.sum, c.kept.y)
		}
		dy = dx
	}
	if p.model.inputs {
		c := &p.calls[0]
		if c.input.drop.Dropout.P != 0 {
			p.device.ApplyBack(dy, tensor.Matrix{}, dy, c.input.matrix, &c.input.drop)
		}
		p.dinput = dy
	}
}

// InputGradient returns the gradient at the rows of the last Forward's input, if the model learns
// them. It lies in the pass's arena, and is empty if Backward was ended early.
func (p *Pass) InputGradient() tensor.Matrix { return p.dinput }

// Stage is the Forward of a single stage, without dropout and without keeping anything. x
// (in, for the first stage) and carry belong to the sources, the results to the targets.
// block is nil for a stage without hops.
func (p *Pass) Stage(stage int, block *sample.Block, in Input, x, carry tensor.Matrix) (y, next tensor.Matrix) {
	if p.model.stages[stage].jump != "" {
		x = carry
	}
	return p.finish(p.single(stage, block, in, x), carry, true)
}

// single begins the call of a single stage.
func (p *Pass) single(stage int, block *sample.Block, in Input, x tensor.Matrix) *Call {
	c := &p.alone
	r := rows{matrix: x}
	if stage == 0 {
		r = rows{matrix: in.Dense, sparse: in.Sparse, sums: in.Sums}
	}
	p.reuse.count = 0
	c.begin(p, stage, block, r, nil)
	c.forward = true
	if stage == 0 && c.input.count() > 0 {
		c.features(0)
	}
	return c
}

// finish runs a single stage from its input, if it enters.
func (p *Pass) finish(c *Call, carry tensor.Matrix, enters bool) (y, next tensor.Matrix) {
	s := c.stage
	gcnii := p.model.spec.Model == "gcnii"
	if gcnii && s.layer >= 0 {
		c.carry = c.Own(carry)
	}
	train := p.Train
	p.Train = false
	if enters {
		s.enter(c)
	}
	y = s.answer(c)
	p.Train = train
	switch {
	case s.info.CarryOut == 0:
		return y, tensor.Matrix{}
	case gcnii && s.layer < 0:
		return y, y
	case gcnii:
		return y, c.carry
	}
	return y, c.collect(carry, y)
}
