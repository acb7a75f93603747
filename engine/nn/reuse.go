package nn

import "github.com/hopmesh/hopmesh/engine/tensor"

// reuse holds freed memory of a pass. Reused memory is warm in the caches, and halves the
// memory of a pass over many vertices.
type reuse struct {
	free  [24]tensor.Matrix // 1 x elements
	count int
}

// line is the alignment of a matrix's start, in elements.
const line = 32

// take returns the smallest piece that is large enough, cut to size, or an empty matrix.
func (r *reuse) take(elements int) tensor.Matrix {
	best := -1
	for i := range r.count {
		if n := r.free[i].Cols; n >= elements && (best < 0 || n < r.free[best].Cols) {
			best = i
		}
	}
	if best < 0 || elements == 0 {
		return tensor.Matrix{}
	}
	m := r.free[best]
	r.count--
	r.free[best] = r.free[r.count]
	if whole := (elements + line - 1) / line * line; whole < m.Cols {
		r.give(m.View(0, 1, whole, m.Cols-whole))
	}
	return m.View(0, 1, 0, elements)
}

// give keeps a piece. If there are too many, it drops the smallest.
func (r *reuse) give(m tensor.Matrix) {
	if m.Cols < line {
		return
	}
	if r.count < len(r.free) {
		r.free[r.count] = m
		r.count++
		return
	}
	least := 0
	for i := range r.free {
		if r.free[i].Cols < r.free[least].Cols {
			least = i
		}
	}
	if r.free[least].Cols < m.Cols {
		r.free[least] = m
	}
}

// New returns a matrix of unspecified content that lives until the end of the pass or
// until Free.
func (c *Call) New(rows, cols int) tensor.Matrix { return c.pass.take(rows, cols) }

func (p *Pass) take(rows, cols int) tensor.Matrix {
	if m := p.reuse.take(rows * cols); !m.None() {
		return m.Reshape(rows, cols)
	}
	return p.arena.Alloc(p.device.Type(), rows, cols)
}

// Free frees whole matrices that New returned and that are no longer needed.
func (c *Call) Free(ms ...tensor.Matrix) {
	for _, m := range ms {
		if m.Rows > 0 && m.Cols > 0 {
			c.pass.reuse.give(m.Reshape(1, m.Rows*m.Cols))
		}
	}
}
