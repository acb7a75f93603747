package nn

import (
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A pass can run stage by stage over one part of the vertices, while the rows of other
// parts that a layer sees come from elsewhere and may be stale. For each stage the caller
// runs
//
//	Enter    computes what neighbours see of the part's own rows,
//	Layer    computes the part's next rows from the rows it sees,
//	Back     goes back to the rows that were seen, of all parts,
//	Leave    goes back to the part's own rows, from the total gradient at what others
//	         saw of them,
//
// the latter two from the last stage to the first. What a stage keeps stays valid until
// the pass begins again. Jumping knowledge is not supported, as each layer's rows would
// have to be carried to the last.

// Begin begins a pass in parts. The caller has reset the arena.
func (p *Pass) Begin() { p.reuse.count = 0 }

// Enter returns what the layer of a stage sees of the part's own rows x of these
// vertices: x itself if nothing precedes the convolution. Enter is not called for the
// first stage, which sees its input unchanged.
func (p *Pass) Enter(stage int, x tensor.Matrix, vertices []uint32) (seen tensor.Matrix) {
	c := &p.calls[stage]
	c.begin(p, stage, nil, rows{matrix: x}, vertices)
	c.kept.raw = x
	c.stage.enter(c)
	return c.input.matrix
}

// Layer returns the rows of a part after a stage. block's targets are the part's
// vertices, which are the first of its sources; it is nil for a stage without hops, which
// sees what Enter returned. seen holds the rows of the sources, or in does for the first
// stage. carry is what is carried beside the part's rows (see StageInfo).
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
// returned. It overwrites dy, which must stay valid until Leave. If wanted, it returns
// the gradient at the rows that were seen, which is to be dropped if they were a block's. It adds the gradient at the carried rows to
// carryGradient.
func (p *Pass) Back(stage int, dy, carryGradient tensor.Matrix, wanted bool) (dseen tensor.Matrix) {
	c := &p.calls[stage]
	c.carryGradient = carryGradient
	dseen, c.kept.dz = c.stage.backToSeen(c, dy, wanted)
	return dseen
}

// Seen returns rows for what the layer of a stage will see of a block's sources, after Enter.
// They live until the pass begins again or until Drop.
func (p *Pass) Seen(stage int, block *sample.Block) tensor.Matrix {
	c := &p.calls[stage]
	c.Block, c.sources, c.targets = block, block.Cols, block.Rows
	if c.sumsFirst() {
		return p.borrow(block.Cols, c.stage.info.In)
	}
	return p.take(block.Cols, c.stage.info.In)
}

// borrow returns rows that somebody drops before any pass takes rows of another part.
func (p *Pass) borrow(rows, cols int) tensor.Matrix {
	if p.Scratch == nil {
		return p.take(rows, cols)
	}
	p.Scratch.Reset()
	p.borrowed = p.Scratch.Alloc(p.device.Type(), rows, cols)
	return p.borrowed
}

// lend returns rows that are given back before the call of a stage ends.
func (p *Pass) lend(rows, cols int) tensor.Matrix {
	switch {
	case p.Scratch == nil:
		return p.take(rows, cols)
	case p.borrowed.None():
		p.Scratch.Reset()
	}
	return p.Scratch.Alloc(p.device.Type(), rows, cols)
}

// back frees rows that were lent.
func (p *Pass) back(rows tensor.Matrix) {
	if p.Scratch == nil {
		p.reuse.give(rows.Reshape(1, rows.Rows*rows.Cols))
	}
}

// Drop frees rows that Seen or Back has returned, for what the pass computes next.
func (p *Pass) Drop(rows tensor.Matrix) {
	if rows == p.borrowed {
		p.borrowed = tensor.Matrix{}
		return
	}
	p.reuse.give(rows.Reshape(1, rows.Rows*rows.Cols))
}

// apart reports whether nothing but the convolution reads what the stage sees.
func (s *stage) apart() bool { return !s.before && !s.skip && s.residual < 0 }

// Reads reports whether Back will read the rows that Layer was given. A layer that
// aggregated before it multiplied has kept the sums, which are fewer.
func (p *Pass) Reads(stage int) bool {
	c := &p.calls[stage]
	switch s := c.stage; s.conv.(type) {
	case *gcn, *gcnii:
		return c.Kept[0].None() || !s.apart()
	case *summed:
		return false
	}
	return true
}

// Leave replaces dx, the gradient at what was seen of the part's own rows, by the
// gradient at the rows that Enter was given.
func (p *Pass) Leave(stage int, dx tensor.Matrix) {
	c := &p.calls[stage]
	c.stage.leave(c, dx, c.Own(c.input.matrix))
	if c.stage.skip {
		p.device.Combine(dx, 1, dx, 1, c.kept.dz)
	}
}
