package nn

import (
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Call is one layer at work in one pass: what it is given, and what its Forward
// leaves for its Backward. A pass has one for each stage and uses it again.
type Call struct {
	Device tensor.Device
	Block  *sample.Block // nil in a stage without hops
	// Kept is for what Forward leaves for Backward. It is empty when Forward begins.
	Kept [8]tensor.Matrix

	pass  *Pass
	stage *stage
	index int // of the stage

	input    rows
	vertices []uint32 // of the sources; may be nil
	sources  int
	targets  int
	own      int  // the source's row that is the first target's
	forward  bool // there is no Backward
	// Of a pass in parts: the gradient at what its own rows were added to.
	dz tensor.Matrix

	// Of the first stage where the sum of the model's front is given: that, and where
	// its gradient is to go.
	sum, dsum tensor.Matrix

	// What travels beside the rows: offset is where the targets are in it.
	carry, carryGradient tensor.Matrix
	offset               int

	kept  keptRows
	conv  tensor.Epilogue // of the convolution
	after tensor.Epilogue // of what follows it
	pre   tensor.Epilogue // of what precedes it
	spare tensor.Epilogue
}

// keptRows is what the stage keeps beside its convolution.
type keptRows struct {
	raw      tensor.Matrix // its input, if the convolution sees another
	x        tensor.Matrix // what the convolution sees then
	preStats tensor.Matrix // of the LayerNorm between
	sum      tensor.Matrix // before LayerNorm
	stats    tensor.Matrix // of LayerNorm
	y        tensor.Matrix // what the stage returned
}

// begin makes the call ready for a stage's Forward.
func (c *Call) begin(p *Pass, index int, b *sample.Block, in rows, vertices []uint32) {
	*c = Call{
		Device: p.device, Block: b,
		pass: p, stage: p.model.stages[index], index: index,
		input: in, vertices: vertices, sources: in.count(),
		forward: p.Gradients.None(),
	}
	c.targets = c.sources
	if b != nil {
		c.targets, c.own = b.Rows, b.Own
	}
}

// given makes the first stage begin with the sum of the front.
func (c *Call) given(sum tensor.Matrix, vertices []uint32) {
	c.sum, c.sources = sum, len(vertices)
	if c.Block == nil {
		c.targets = c.sources
	}
}

// Sources and Targets count rows.
func (c *Call) Sources() int { return c.sources }

// Targets is as Sources.
func (c *Call) Targets() int { return c.targets }

// Carry is the first representation of the targets, in a gcnii.
func (c *Call) Carry() tensor.Matrix { return c.carry }

// CarryGradient is where its gradient is added to.
func (c *Call) CarryGradient() tensor.Matrix { return c.carryGradient }

// Own is the rows of the targets among those of the sources.
func (c *Call) Own(sources tensor.Matrix) tensor.Matrix {
	return sources.RowRange(c.own, c.targets)
}

// NewIndices is a matrix for what AggregateMax and Max choose. It is not freed.
func (c *Call) NewIndices(rows, cols int) tensor.Matrix {
	return c.pass.arena.Alloc(tensor.I32, rows, cols)
}

// Epilogue is a place for e that costs no memory. The next call takes it again.
func (c *Call) Epilogue(e tensor.Epilogue) *tensor.Epilogue {
	c.spare = e
	return &c.spare
}

// Weight is a weight of the convolution, by its place in Weights.
func (c *Call) Weight(i int) tensor.Matrix { return c.pass.weight(c.stage.first + i) }

// Gradient is where the gradient of that weight is added to.
func (c *Call) Gradient(i int) tensor.Matrix { return c.pass.gradient(c.stage.first + i) }

// What dropout is of: each has keys of its own. The numbers never change.
const (
	dropInput     = 0
	dropRows      = 1
	dropAttention = 2
	dropBefore    = 3
)

// dropout is that of one place in this stage, over rows of these vertices.
func (c *Call) dropout(place uint64, p float64, vertices []uint32) tensor.Dropout {
	if !c.pass.Train || p == 0 {
		return tensor.Dropout{}
	}
	return tensor.Dropout{P: float32(p), Key: c.pass.Key.With(uint64(c.index)).With(place), Vertices: vertices}
}

// DropAttention is the dropout of attention along the block's entries.
func (c *Call) DropAttention(p float64) tensor.Dropout {
	return c.dropout(dropAttention, p, c.vertices)
}

// ownVertices is the vertices of the targets.
func (c *Call) ownVertices() []uint32 {
	if c.vertices == nil {
		return nil
	}
	return c.vertices[c.own:][:c.targets]
}
