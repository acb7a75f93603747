package nn

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// slope is the slope below 0 of the leaky ReLU in attention scores.
const slope = 0.2

// heads is shared by both versions of graph attention: the number and width of heads, and
// whether their rows are averaged or concatenated.
type heads struct {
	in, out  int
	count    int
	width    int // columns of a head
	averaged bool
	bias     bool
	dropout  float64 // of attention
}

func newGAT(s Spec, p Place) Conv {
	h := heads{in: p.In, out: p.Out, count: s.Heads, bias: s.Head == HeadNone, dropout: s.AttentionDropout}
	if p.Answers {
		h.count, h.averaged = s.OutHeads, true
		h.width = p.Out
	} else {
		h.width = p.Out / s.Heads
	}
	if s.Version == 2 {
		return &gatv2{h}
	}
	return &gat{h}
}

// inWords describes what follows the scores of edges: s(u, v) of each head.
func (h *heads) inWords() string {
	text := fmt.Sprintf(" Here leaky(s) = s where it is above 0, else %v * s. The shares of a vertex' in-edges = softmax of their scores, in each head.", slope)
	if h.dropout > 0 {
		text += fmt.Sprintf(" In training alone: dropout of %v of the shares.", h.dropout)
	}
	text += " y of a head = the sum of share * z of the source over the in-edges, 0 where there are none."
	if h.averaged {
		return text + " y = the mean of the heads."
	}
	return text + " y = the heads side by side."
}

// divided describes how the columns belong to heads.
func (h *heads) divided() string {
	if h.count == 1 {
		return fmt.Sprintf("1 head of %d columns", h.width)
	}
	return fmt.Sprintf("%d heads of %d columns each, side by side", h.count, h.width)
}

// columns returns the total width of all heads.
func (h *heads) columns() int { return h.count * h.width }

// attended returns the matrix for the rows of all heads: y itself, unless they are
// averaged.
func (h *heads) attended(c *Call, y tensor.Matrix) tensor.Matrix {
	if h.averaged && h.count > 1 {
		return c.New(c.Targets(), h.columns())
	}
	return y
}

// join computes y from the rows of all heads.
func (h *heads) join(c *Call, y, all tensor.Matrix, e *tensor.Epilogue) {
	if h.averaged && h.count > 1 {
		share, sum := 1/float64(h.count), tensor.Matrix{}
		for i := range h.count {
			c.Device.Combine(y, share, all.View(0, all.Rows, i*h.width, h.width), 1, sum)
			sum = y
		}
	}
	if e != nil {
		c.Device.Apply(y, y, e)
	}
	h.free(c, all)
}

// free frees the rows of all heads, or their gradient, unless they are y's.
func (h *heads) free(c *Call, all tensor.Matrix) {
	if h.averaged && h.count > 1 {
		c.Free(all)
	}
}

// spread returns the gradient at the rows of all heads.
func (h *heads) spread(c *Call, dy tensor.Matrix) tensor.Matrix {
	if !h.averaged || h.count == 1 {
		return dy
	}
	all := c.New(c.Targets(), h.columns())
	for i := range h.count {
		part := all.View(0, all.Rows, i*h.width, h.width)
		c.Device.Combine(part, 1/float64(h.count), dy, 0, tensor.Matrix{})
	}
	return all
}

// gat is the convolution of Velickovic et al.: the score of an edge is the sum of a
// source's term and a target's term.
type gat struct{ heads }

func (l *gat) Weights() []Weight {
	w := []Weight{
		{"weight", l.in, l.columns(), Glorot(l.in, l.columns())},
		{"attention.source", 1, l.columns(), Glorot(l.count, l.width)},
		{"attention.target", 1, l.columns(), Glorot(l.count, l.width)},
	}
	if l.bias {
		w = append(w, Weight{Bias, 1, l.out, Zeros})
	}
	return w
}

func (l *gat) Words(use func(string) string) string {
	return "z = x * " + use("weight") + ": " + l.divided() + ". The score of an edge (u, v) in a head = leaky(z(u) . " + use("attention.source") + " + z(v) . " + use("attention.target") +
		"), the products being those of the head's columns." + l.inWords()
}

func (l *gat) Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	x, left := l.apart(c.input.carried)
	if c.input.carried.None() {
		x, left = c.New(c.Sources(), l.columns()), c.New(c.Sources(), l.count)
		l.see(c, x, left)
	}
	l.attend(c, y, x, left, c.of(x), e)
}

// attend is the rest of Forward after the product, of which own are the targets' rows.
func (l *gat) attend(c *Call, y, x, left, own tensor.Matrix, e *tensor.Epilogue) {
	right := c.New(c.Targets(), l.count)
	c.Device.HeadDot(right, own, c.Weight(2))
	all, stats := l.attended(c, y), c.New(c.Targets(), 2*l.count)
	c.Device.Attend(all, stats, &c.Block.CSR, x, left, right, slope, c.DropAttention(l.dropout), c.Block.Own)
	l.join(c, y, all, e)
	c.Kept[0], c.Kept[1], c.Kept[2], c.Kept[3] = x, left, right, stats
}

// see computes the product of the sources' rows, and their terms of the scores.
func (l *gat) see(c *Call, x, left tensor.Matrix) {
	c.Mul(x, c.Weight(0), false, nil)
	c.Device.HeadDot(left, x, c.Weight(1))
}

// apart returns the product and the terms of the scores in what edges carry.
func (l *gat) apart(carried tensor.Matrix) (x, left tensor.Matrix) {
	if carried.None() {
		return x, left
	}
	return carried.View(0, carried.Rows, 0, l.columns()), carried.View(0, carried.Rows, l.columns(), l.count)
}

func (l *gat) carries(*Call) int { return l.columns() + l.count }

func (l *gat) carry(c *Call, to tensor.Matrix) {
	x, left := l.apart(to)
	l.see(c, x, left)
}

func (l *gat) readsOwn() bool { return false }

func (l *gat) Backward(c *Call, dx, dy tensor.Matrix) {
	dh := l.finishBack(c, dy)
	c.MulBack(dx, c.Gradient(0), dh, c.Weight(0))
	c.Free(dh)
}

func (*gat) weighs() {}

func (l *gat) front() ([]frontTerm, int) { return []frontTerm{{weight: 0, own: 1}}, l.columns() }

func (l *gat) finish(c *Call, y, sum tensor.Matrix, e *tensor.Epilogue) {
	left := c.New(c.Sources(), l.count)
	c.Device.HeadDot(left, sum, c.Weight(1))
	l.attend(c, y, sum, left, c.Own(sum), e)
}

// finishBack returns the gradient at the product.
func (l *gat) finishBack(c *Call, dy tensor.Matrix) tensor.Matrix {
	x, left, right, stats := c.Kept[0], c.Kept[1], c.Kept[2], c.Kept[3]
	dh := c.New(c.Sources(), l.columns())
	dleft, dright := c.New(c.Sources(), l.count), c.New(c.Targets(), l.count)
	dall := l.spread(c, dy)
	c.Device.AttendBack(dh, dleft, dright, &c.Block.CSR, dall, stats, x, left, right, slope, c.DropAttention(l.dropout), c.Block.Own)
	c.Device.HeadDotBack(dh, c.Gradient(1), dleft, x, c.Weight(1))
	c.Device.HeadDotBack(c.Own(dh), c.Gradient(2), dright, c.Own(x), c.Weight(2))
	l.free(c, dall)
	c.Free(dleft, dright)
	return dh
}
