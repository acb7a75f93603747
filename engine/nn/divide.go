package nn

import (
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/dry"
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

// divided is implemented by convolutions that can run in two steps. Where Call.carried is
// set, Forward does the second step, and has no rows of sources.
type divided interface {
	// carries returns how many columns edges carry; 0: the rows that the convolution sees.
	carries(c *Call) int
	// carry computes them of all sources.
	carry(c *Call, to tensor.Matrix)
	// readsOwn reports whether Forward reads the rows of the targets that it sees.
	readsOwn() bool
}

// Divide reports how a stage is divided, if it can be. sparse reports whether the features
// are.
func (m *Model) Divide(stage int, sparse bool) (d Division, ok bool) {
	s := m.stages[stage]
	conv, ok := s.conv.(divided)
	if !ok || s.info.Hops == 0 {
		return d, false
	}
	p := &Pass{model: m}
	c := &p.alone
	var in rows
	if stage == 0 && sparse {
		in.sparse = &tensor.CSR{}
	}
	c.begin(p, stage, nil, in, nil)
	d = Division{Carried: conv.carries(c), Own: conv.readsOwn() || s.residual >= 0 || s.skip}
	if d.Carried == 0 && (stage == 0 || s.before) {
		d.Carried = s.info.In
	}
	return d, true
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
	c.Block, c.carried = block, carried
	c.sources, c.targets = block.Rows, block.Rows
	return p.finish(c, beside, c.input.count() > 0)
}

// ForecastCarry returns how many bytes of an arena Carry takes.
func (m *Model) ForecastCarry(stage int, in InputSize) int {
	p, arena := m.counting()
	x, rows := m.sizedInput(stage, in)
	p.Carry(stage, x, rows)
	return arena.Peak()
}

// ForecastSum returns how many bytes of an arena Sum takes, and how many a device may use
// beside it. in is the size of the targets' input.
func (m *Model) ForecastSum(stage int, in InputSize, b Size) (arena, beside int) {
	p, counted := m.counting()
	info := &m.stages[stage].info
	d, _ := m.Divide(stage, in.Sparse)
	if d.Carried == 0 {
		d.Carried = info.In
	}
	var carry tensor.Matrix
	if info.CarryIn > 0 {
		carry = unseen(b.Targets, info.CarryIn)
	}
	x, rows := m.sizedInput(stage, in)
	p.Sum(stage, &sample.Block{CSR: *sized(b.Targets, b.Sources, b.Entries)}, x, rows, unseen(b.Sources, d.Carried), carry)
	return counted.Peak(), p.device.(*dry.Device).Beside()
}

// counting returns a pass that only counts memory.
func (m *Model) counting() (*Pass, *dry.Arena) {
	device := dry.New(tensor.F32)
	arena := device.Arena()
	return &Pass{model: m, device: device, arena: arena, Weights: unseen(1, m.size)}, arena
}

// sizedInput returns rows of this size for a stage.
func (m *Model) sizedInput(stage int, in InputSize) (x Input, rows tensor.Matrix) {
	columns := m.stages[stage].info.In
	switch {
	case stage > 0:
		return x, unseen(in.Rows, columns)
	case in.Sparse:
		return Input{Sparse: sized(in.Rows, columns, in.Entries)}, rows
	}
	return Input{Dense: unseen(in.Rows, columns)}, rows
}

// seen returns the rows that the convolution sees along edges.
func (c *Call) seen() tensor.Matrix {
	if !c.carried.None() {
		return c.carried
	}
	return c.X()
}

// of returns the rows of the targets among those that edges carry.
func (c *Call) of(carried tensor.Matrix) tensor.Matrix {
	return carried.RowRange(c.Block.Own, c.targets)
}

// product returns the sources' rows times a weight.
func (c *Call) product(w tensor.Matrix, e *tensor.Epilogue) tensor.Matrix {
	if !c.carried.None() {
		return c.carried
	}
	y := c.New(c.sources, w.Cols)
	c.Mul(y, w, false, e)
	return y
}

// drop frees a product, unless it is carried.
func (c *Call) drop(product tensor.Matrix) {
	if c.carried.None() {
		c.Free(product)
	}
}
