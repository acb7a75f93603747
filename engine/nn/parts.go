package nn

import (
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A pass can be made stage by stage over one part of the vertices, where the rows that
// a layer sees of other parts come from elsewhere, and may be those of another time.
// Who does so has each stage
//
//	Enter    make of the part's own rows what neighbours see of them,
//	Layer    make the part's next rows of what it sees,
//	Back     go back to the rows that were seen, whoever's they are,
//	Leave    go back to the part's own rows, from all that is known of the gradient at
//	         what others saw of them,
//
// the latter two from the last stage to the first. What a stage keeps stays until the
// pass is begun again. Jumping knowledge, for which each layer's rows would have to
// travel to the last, can't be had so.

// Begin begins a pass that is made in parts. The caller has reset the arena.
func (p *Pass) Begin() { p.reuse.count = 0 }

// Enter returns what the layer of a stage sees of the part's own rows x, which are of
// these vertices: x itself, where nothing is done to it. The first stage of a model does
// nothing to its input, and is not entered.
func (p *Pass) Enter(stage int, x tensor.Matrix, vertices []uint32) (seen tensor.Matrix) {
	c := &p.calls[stage]
	c.begin(p, stage, nil, rows{matrix: x}, vertices)
	c.kept.raw = x
	c.stage.enter(c)
	return c.input.matrix
}

// Layer returns the rows of a part after a stage. block has the part's vertices for
// targets, and they are the first of its sources; it is nil for a stage without hops,
// which has been entered with all that it sees. seen are the rows of the sources or, of
// the first stage, in. carry is what travels beside the rows of the part (see
// StageInfo).
func (p *Pass) Layer(stage int, block *sample.Block, in Input, seen, carry tensor.Matrix) (y tensor.Matrix) {
	c := &p.calls[stage]
	switch {
	case stage == 0:
		vertices := in.Vertices
		if vertices == nil && block != nil {
			vertices = block.Vertices
		}
		c.begin(p, stage, block, rows{matrix: in.Dense, sparse: in.Sparse}, vertices)
		c.features(p.model.spec.InputDropout)
	case block != nil:
		c.Block, c.input, c.vertices = block, rows{matrix: seen}, block.Vertices
		c.sources, c.targets, c.own = seen.Rows, block.Rows, block.Own
	}
	c.carry = carry
	return c.stage.answer(c)
}

// Back adds to the gradients of a stage's weights from dy, the gradient at what Layer
// returned, which it overwrites and which must stay until Leave. It returns the gradient
// at the rows that were seen, unless it is not wanted. To carryGradient it adds that at
// what travels beside the rows.
func (p *Pass) Back(stage int, dy, carryGradient tensor.Matrix, wanted bool) (dseen tensor.Matrix) {
	c := &p.calls[stage]
	c.carryGradient = carryGradient
	dseen, c.dz = c.stage.backToSeen(c, dy, wanted)
	return dseen
}

// Leave makes of the gradient at what was seen of the part's own rows that at the rows
// which Enter was given, in its place.
func (p *Pass) Leave(stage int, dx tensor.Matrix) {
	c := &p.calls[stage]
	c.stage.leave(c, dx, c.Own(c.input.matrix))
	if c.stage.skip {
		p.device.Combine(dx, 1, dx, 1, c.dz)
	}
}
