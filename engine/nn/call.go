package nn

import (
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Call is one layer's state in one pass: its input, and what Forward keeps for
// Backward. A pass has one per stage and reuses it.
type Call struct {
	Device tensor.Device
	Block  *sample.Block // nil in a stage without hops
	// Kept holds what Forward keeps for Backward. It is empty when Forward begins.
	Kept [8]tensor.Matrix

	pass  *Pass
	stage *stage
	index int // of the stage

	input    rows
	vertices []uint32 // of the sources; may be nil
	sources  int
	targets  int
	own      int  // the source row of the first target
	forward  bool // Backward is not called

	// In the first stage, if the sum of the model's front is given: the sum and its
	// gradient.
	sum, dsum tensor.Matrix

	// The representation carried beside the rows; offset is where the targets begin in
	// it.
	carry, carryGradient tensor.Matrix
	offset               int

	kept  keptRows
	conv  tensor.Epilogue // applied by the convolution
	after tensor.Epilogue // applied after it
	pre   tensor.Epilogue // applied before it
	spare tensor.Epilogue

	by byRelation
}

// byRelation says of which relation a call is, and of how many there are: 0 if it is of none. calls
// are those of the relations of this one, made once.
type byRelation struct {
	relation, count int
	calls           []related
}

// keptRows holds what the stage keeps beside its convolution.
type keptRows struct {
	raw      tensor.Matrix // the stage's input, if the convolution sees another
	x        tensor.Matrix // what the convolution sees then
	preStats tensor.Matrix // statistics of the LayerNorm between
	sum      tensor.Matrix // input of LayerNorm
	stats    tensor.Matrix // statistics of LayerNorm
	y        tensor.Matrix // what the stage returned
	dz       tensor.Matrix // in a pass in parts: the gradient at the sum that its own rows were added to
}

// begin prepares the call for a stage's Forward.
func (c *Call) begin(p *Pass, index int, b *sample.Block, in rows, vertices []uint32) {
	*c = Call{
		Device: p.device, Block: b,
		pass: p, stage: p.model.stages[index], index: index,
		input: in, vertices: vertices, sources: in.count(),
		forward: p.Gradients.None(), by: byRelation{calls: c.by.calls},
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

// Sources returns the number of source rows.
func (c *Call) Sources() int { return c.sources }

// Targets returns the number of target rows.
func (c *Call) Targets() int { return c.targets }

// Carry returns the targets' first representation (gcnii).
func (c *Call) Carry() tensor.Matrix { return c.carry }

// CarryGradient returns the matrix that its gradient is added to.
func (c *Call) CarryGradient() tensor.Matrix { return c.carryGradient }

// Own returns the rows of the targets among those of the sources.
func (c *Call) Own(sources tensor.Matrix) tensor.Matrix {
	return sources.RowRange(c.own, c.targets)
}

// NewIndices returns a matrix for the choices of AggregateMax and Max. It is not freed.
func (c *Call) NewIndices(rows, cols int) tensor.Matrix {
	return c.pass.arena.Alloc(tensor.I32, rows, cols)
}

// Epilogue stores e without allocating. The next call reuses the memory.
func (c *Call) Epilogue(e tensor.Epilogue) *tensor.Epilogue {
	c.spare = e
	return &c.spare
}

// Weight returns a weight of the convolution by its index in Weights.
func (c *Call) Weight(i int) tensor.Matrix { return c.partOf(c.pass.weight(c.stage.first + i)) }

// Gradient returns the matrix that the gradient of that weight is added to.
func (c *Call) Gradient(i int) tensor.Matrix { return c.partOf(c.pass.gradient(c.stage.first + i)) }

// partOf returns the part of a weight that belongs to the call's relation, if it has one.
func (c *Call) partOf(w tensor.Matrix) tensor.Matrix {
	if c.by.count == 0 {
		return w
	}
	rows := w.Rows / c.by.count
	return w.RowRange(c.by.relation*rows, rows)
}

// The places of dropout; each has its own keys. The numbers never change.
const (
	dropInput     = 0
	dropRows      = 1
	dropAttention = 2
	dropBefore    = 3
)

// dropout returns the dropout at one place of this stage, over rows of these vertices.
func (c *Call) dropout(place uint64, p float64, vertices []uint32) tensor.Dropout {
	if !c.pass.Train || p == 0 {
		return tensor.Dropout{}
	}
	// The key is that of the stage before any was split.
	stage := max(0, c.index-c.pass.model.split)
	key := c.pass.Key.With(uint64(stage)).With(place)
	if c.by.count > 0 {
		key = key.With(uint64(c.by.relation)) // an edge may have several relations
	}
	return tensor.Dropout{P: float32(p), Key: key, Vertices: vertices}
}

// DropAttention returns the dropout of attention along the block's entries.
func (c *Call) DropAttention(p float64) tensor.Dropout {
	return c.dropout(dropAttention, p, c.vertices)
}

// ownVertices returns the vertices of the targets.
func (c *Call) ownVertices() []uint32 {
	if c.vertices == nil {
		return nil
	}
	return c.vertices[c.own:][:c.targets]
}
