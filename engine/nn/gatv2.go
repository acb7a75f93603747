package nn

import "github.com/hopmesh/hopmesh/engine/tensor"

// gatv2 is the convolution of Brody, Alon and Yahav: the ranking of sources depends on
// the target.
type gatv2 struct{ Heads }

// The indices of its weights. The biases of both products exist if the layer has biases.
const (
	v2Source = iota
	v2Target
	v2Attention
	v2SourceBias
	v2TargetBias
)

func (l *gatv2) Weights() []Weight {
	n := l.Columns()
	w := []Weight{
		{"source.weight", l.in, n, Glorot(l.in, n)},
		{"target.weight", l.in, n, Glorot(l.in, n)},
		{"attention", 1, n, Glorot(l.Count, l.Width)},
	}
	if l.Biased {
		w = append(w,
			Weight{"source.bias", 1, n, Zeros},
			Weight{"target.bias", 1, n, Zeros},
			Weight{Bias, 1, l.out, Zeros})
	}
	return w
}

func (l *gatv2) Words(use func(string) string) string {
	product := func(of string) string {
		text := "x * " + use(of+".weight")
		if l.Biased {
			text += " + " + use(of+".bias")
		}
		return text
	}
	return "z = " + product("source") + " and t = " + product("target") + ": " + l.Divided() + ". The score of an edge (u, v) in a head = leaky(z(u) + t(v)) . " + use("attention") +
		", the product being that of the head's columns." + l.InWords()
}

func (l *gatv2) Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	to := c.New(c.Targets(), l.Columns())
	x := c.product(c.Weight(v2Source), l.biased(c, v2SourceBias))
	c.MulOwn(to, c.Weight(v2Target), false, l.biased(c, v2TargetBias))
	l.attend(c, y, x, to, e)
}

// attend is the rest of Forward after the products of the sources and the targets.
func (l *gatv2) attend(c *Call, y, x, to tensor.Matrix, e *tensor.Epilogue) {
	all, stats := l.Attended(c, y), c.New(c.Targets(), 2*l.Count)
	c.Device.AttendV2(all, stats, &c.Block.CSR, x, to, c.Weight(v2Attention), Slope, c.DropAttention(l.Dropout), c.Block.Own)
	l.Join(c, y, all, e)
	c.Kept[0], c.Kept[1], c.Kept[2] = x, to, stats
}

func (l *gatv2) carries(*Call) int { return l.Columns() }

func (l *gatv2) carry(c *Call, to tensor.Matrix) {
	c.Mul(to, c.Weight(v2Source), false, l.biased(c, v2SourceBias))
}

func (l *gatv2) readsOwn() bool { return true }

// biased returns an epilogue that adds the bias, if there is one.
func (l *gatv2) biased(c *Call, weight int) *tensor.Epilogue {
	if !l.Biased {
		return nil
	}
	return c.Epilogue(tensor.Epilogue{Bias: c.Weight(weight)})
}

func (*gatv2) weighs() {}

// front has both products for all sources, though the second one is only used of targets.
func (l *gatv2) front() ([]frontTerm, int) {
	n := l.Columns()
	return []frontTerm{{weight: v2Source, own: 1}, {weight: v2Target, col: n, own: 1}}, 2 * n
}

func (l *gatv2) finish(c *Call, y, sum tensor.Matrix, e *tensor.Epilogue) {
	n := l.Columns()
	x, to := sum.View(0, sum.Rows, 0, n), c.Own(sum.View(0, sum.Rows, n, n))
	if l.Biased {
		x, to = c.New(c.Sources(), n), c.New(c.Targets(), n)
		c.Device.Apply(x, sum.View(0, sum.Rows, 0, n), l.biased(c, v2SourceBias))
		c.Device.Apply(to, c.Own(sum.View(0, sum.Rows, n, n)), l.biased(c, v2TargetBias))
	}
	l.attend(c, y, x, to, e)
}

func (l *gatv2) finishBack(c *Call, dy tensor.Matrix) tensor.Matrix {
	n := l.Columns()
	dh, dto := l.attendBack(c, dy)
	dsum := c.New(c.Sources(), 2*n)
	c.Device.Zero(dsum)
	c.Device.Combine(dsum.View(0, dsum.Rows, 0, n), 1, dh, 0, tensor.Matrix{})
	c.Device.Combine(c.Own(dsum.View(0, dsum.Rows, n, n)), 1, dto, 0, tensor.Matrix{})
	c.Free(dh, dto)
	return dsum
}

func (l *gatv2) Backward(c *Call, dx, dy tensor.Matrix) {
	dh, dto := l.attendBack(c, dy)
	c.MulBack(dx, c.Gradient(v2Source), dh, c.Weight(v2Source))
	c.MulOwnBack(dx, c.Gradient(v2Target), dto, c.Weight(v2Target))
	c.Free(dh, dto)
}

// attendBack goes back to the products, and adds to the gradients of what follows them.
func (l *gatv2) attendBack(c *Call, dy tensor.Matrix) (dh, dto tensor.Matrix) {
	x, to, stats := c.Kept[0], c.Kept[1], c.Kept[2]
	dh, dto = c.New(c.Sources(), l.Columns()), c.New(c.Targets(), l.Columns())
	dall := l.Spread(c, dy)
	c.Device.AttendV2Back(dh, dto, c.Gradient(v2Attention), &c.Block.CSR, dall, stats, x, to, c.Weight(v2Attention), Slope, c.DropAttention(l.Dropout), c.Block.Own)
	if l.Biased {
		c.Device.ColumnSums(c.Gradient(v2SourceBias), dh)
		c.Device.ColumnSums(c.Gradient(v2TargetBias), dto)
	}
	l.Freed(c, dall)
	return dh, dto
}
