package nn

import "github.com/hopmesh/hopmesh/engine/tensor"

// jump implements jumping knowledge: a head that sees the rows of every layer for the
// targets of the last block. These are views; nothing is copied.
type jump struct {
	largest, which tensor.Matrix // of max
	dz             tensor.Matrix // at the logits, or, for max, at the largest
}

// rows returns layer k's rows of the vertices that the head predicts.
func (j *jump) rows(p *Pass, k int) tensor.Matrix {
	return p.calls[k].answered(p, p.calls[k].kept.y)
}

// answered returns the rows of the head's vertices among the stage's targets.
func (c *Call) answered(p *Pass, targets tensor.Matrix) tensor.Matrix {
	head := &p.calls[len(p.calls)-1]
	return targets.RowRange(head.offset-c.offset, head.targets)
}

// layers returns the number of layers: they are the first stages of a model with jumps.
func (j *jump) layers(p *Pass) int { return len(p.calls) - 1 }

// part returns layer k's part of the head's weight or its gradient.
func part(w tensor.Matrix, k, layers int) tensor.Matrix {
	return w.RowRange(k*(w.Rows/layers), w.Rows/layers)
}

func (j *jump) forward(p *Pass, c *Call) tensor.Matrix {
	layers, w := j.layers(p), c.Weight(0)
	y := c.New(c.targets, c.stage.info.Out)
	bias := c.Epilogue(tensor.Epilogue{Bias: p.weight(c.stage.bias)})
	if c.stage.jump == JumpMax {
		j.largest, j.which = c.New(c.targets, w.Rows), c.NewIndices(c.targets, w.Rows)
		for k := range layers {
			p.device.Max(j.largest, j.which, j.rows(p, k), k, k == 0)
		}
		p.device.MatMul(y, j.largest, w, tensor.NN, false, bias)
		return y
	}
	for k := range layers {
		e := bias
		if k < layers-1 {
			e = nil
		}
		p.device.MatMul(y, j.rows(p, k), part(w, k, layers), tensor.NN, k > 0, e)
	}
	return y
}

// backward is the backward pass for the head's own weights.
func (j *jump) backward(p *Pass, c *Call, dy tensor.Matrix) {
	layers, dw := j.layers(p), c.Gradient(0)
	p.device.ColumnSums(p.gradient(c.stage.bias), dy)
	j.dz = dy
	if c.stage.jump == JumpMax {
		p.device.MatMul(dw, j.largest, dy, tensor.TN, true, nil)
		j.dz = c.New(c.targets, dw.Rows)
		p.device.MatMul(j.dz, dy, c.Weight(0), tensor.NT, false, nil)
		return
	}
	for k := range layers {
		p.device.MatMul(part(dw, k, layers), j.rows(p, k), dy, tensor.TN, true, nil)
	}
}

// into adds the head's gradient to the gradient at a layer's rows. The last layer has no
// other gradient.
func (j *jump) into(p *Pass, c *Call, dy tensor.Matrix) tensor.Matrix {
	layers, k, out := j.layers(p), c.stage.layer, c.stage.info.Out
	last := k == layers-1
	if last {
		dy = c.New(c.targets, out)
	}
	to := c.answered(p, dy)
	if p.model.spec.Jump == JumpCat {
		w := part(p.calls[layers].Weight(0), k, layers)
		p.device.MatMul(to, j.dz, w, tensor.NT, !last, nil)
		return dy
	}
	if last {
		p.device.MaxBack(to, j.dz, j.which, k)
		return dy
	}
	share := c.New(to.Rows, to.Cols)
	p.device.MaxBack(share, j.dz, j.which, k)
	p.device.Combine(to, 1, to, 1, share)
	c.Free(share)
	return dy
}

// collect returns the rows carried beside a layer's rows when stages run one by one.
func (c *Call) collect(carry, y tensor.Matrix) tensor.Matrix {
	d, s, none := c.Device, c.stage, tensor.Matrix{}
	if s.layer == 0 {
		return y
	}
	next := c.New(c.targets, s.info.CarryOut)
	if c.pass.model.spec.Jump == JumpMax {
		which := c.NewIndices(c.targets, s.info.CarryOut)
		d.Max(next, which, c.Own(carry), 0, true)
		d.Max(next, which, y, 1, false)
		return next
	}
	d.Combine(next.View(0, c.targets, 0, s.info.CarryIn), 1, c.Own(carry), 0, none)
	d.Combine(next.View(0, c.targets, s.info.CarryIn, s.info.Out), 1, y, 0, none)
	return next
}
