package nn

import "github.com/hopmesh/hopmesh/engine/tensor"

// A stage is a convolution, or a linear map of each row, with what belongs to it:
//
//	x = drop(activate(norm(x)))       if something precedes it
//	y = conv(x) + bias + x*residual   or + the stage's input, if it skips
//	y = drop(activate(norm(y)))
//
// Weights are indices into the model's; -1 means absent.
type stage struct {
	info  StageInfo
	conv  Conv
	first int // the convolution's first weight
	bias  int

	before   bool
	preNorm  int
	preRelu  bool
	preDrop  float64
	skip     bool
	residual int
	norm     int
	activate tensor.Activation
	drop     float64

	layer int    // index of the convolution, or -1
	jump  string // of a head: what it sees
}

// forward sets what the convolution sees, and returns the targets' rows.
func (s *stage) forward(c *Call) tensor.Matrix {
	s.enter(c)
	return s.answer(c)
}

// answer is the rest of forward, from what the convolution sees.
func (s *stage) answer(c *Call) tensor.Matrix {
	p, d := c.pass, c.Device
	c.conv, c.after = tensor.Epilogue{}, tensor.Epilogue{}
	if s.bias >= 0 {
		c.conv.Bias = p.weight(s.bias)
	}
	after := &c.after
	if s.residual < 0 && s.norm < 0 {
		after = &c.conv
	}
	after.Activation, after.Dropout = s.activate, c.dropout(dropRows, s.drop, c.ownVertices())

	y := c.New(c.targets, s.info.Out)
	s.convolve(c, y, orNone(&c.conv))
	if s.skip {
		d.Combine(y, 1, y, 1, c.Own(c.kept.raw))
	}
	switch {
	case s.residual >= 0 && s.norm < 0:
		c.after.Bias = p.weight(s.residual + 1)
		s.addResidual(c, y, &c.after)
	case s.residual >= 0:
		s.addResidual(c, y, c.Epilogue(tensor.Epilogue{Bias: p.weight(s.residual + 1)}))
	}
	if s.norm >= 0 {
		c.kept.sum, c.kept.stats = y, c.New(c.targets, 2)
		y = c.New(c.targets, s.info.Out)
		d.LayerNorm(y, c.kept.stats, c.kept.sum, p.weight(s.norm), p.weight(s.norm+1), &c.after)
	}
	c.kept.y = y
	return y
}

// orNone returns nil for an epilogue that does nothing.
func orNone(e *tensor.Epilogue) *tensor.Epilogue {
	if e.Bias.None() && e.Activation == tensor.Linear && e.Dropout.P == 0 {
		return nil
	}
	return e
}

// enter applies what precedes the convolution.
func (s *stage) enter(c *Call) {
	if !s.before {
		return
	}
	c.kept.raw = c.X()
	c.pre = tensor.Epilogue{Dropout: c.dropout(dropBefore, s.preDrop, c.vertices)}
	if s.preRelu {
		c.pre.Activation = tensor.ReLU
	}
	if s.preNorm < 0 && orNone(&c.pre) == nil {
		return
	}
	x := c.New(c.sources, s.info.In)
	if s.preNorm >= 0 {
		c.kept.preStats = c.New(c.sources, 2)
		c.Device.LayerNorm(x, c.kept.preStats, c.kept.raw, c.pass.weight(s.preNorm), c.pass.weight(s.preNorm+1), &c.pre)
	} else {
		c.Device.Apply(x, c.kept.raw, &c.pre)
	}
	c.input.matrix, c.kept.x = x, x
}

// backward takes the gradient at forward's result, which it overwrites, and returns the
// gradient at the sources' rows if wanted.
func (s *stage) backward(c *Call, dy tensor.Matrix, wanted bool) tensor.Matrix {
	dx, dz := s.backToSeen(c, dy, wanted)
	if !wanted {
		return dx
	}
	s.leave(c, dx, c.input.matrix)
	if s.skip {
		c.Device.Combine(c.Own(dx), 1, c.Own(dx), 1, dz)
	}
	return dx
}

// backToSeen goes back to what the convolution saw; dz is the gradient at the sum of its
// output and what was added to it.
func (s *stage) backToSeen(c *Call, dy tensor.Matrix, wanted bool) (dx, dz tensor.Matrix) {
	dz = s.backToSum(c, dy)
	switch {
	case wanted && c.Block == nil:
		dx = c.New(c.sources, s.info.In)
	case wanted:
		dx = c.pass.borrow(c.sources, s.info.In)
	}
	s.convolveBack(c, dx, dz)
	if s.residual >= 0 {
		c.Device.ColumnSums(c.pass.gradient(s.residual+1), dz)
		s.addResidualBack(c, dx, dz)
	}
	return dx, dz
}

// leave is the backward pass of enter: it overwrites dx; seen is the result of enter.
func (s *stage) leave(c *Call, dx, seen tensor.Matrix) {
	p, d, none := c.pass, c.Device, tensor.Matrix{}
	if !s.before {
		return
	}
	if orNone(&c.pre) != nil {
		d.ApplyBack(dx, none, dx, seen, &c.pre)
	}
	if s.preNorm >= 0 {
		d.LayerNormBack(dx, p.gradient(s.preNorm), p.gradient(s.preNorm+1), dx, c.kept.raw, c.kept.preStats, p.weight(s.preNorm))
	}
}

// backToSum goes back to the sum of the convolution's output, residual and bias, and adds
// to the bias's gradient.
func (s *stage) backToSum(c *Call, dy tensor.Matrix) tensor.Matrix {
	p, d := c.pass, c.Device
	dbias := tensor.Matrix{}
	if s.bias >= 0 {
		dbias = p.gradient(s.bias)
	}
	after := &c.after
	if s.residual < 0 && s.norm < 0 {
		after = &c.conv
	}
	nonlinear := after.Activation != tensor.Linear || after.Dropout.P != 0
	if nonlinear && s.norm < 0 {
		d.ApplyBack(dy, dbias, dy, c.kept.y, after)
		return dy
	}
	if nonlinear {
		d.ApplyBack(dy, tensor.Matrix{}, dy, c.kept.y, after)
	}
	if s.norm >= 0 {
		d.LayerNormBack(dy, p.gradient(s.norm), p.gradient(s.norm+1), dy, c.kept.sum, c.kept.stats, p.weight(s.norm))
	}
	if !dbias.None() {
		d.ColumnSums(dbias, dy)
	}
	return dy
}
