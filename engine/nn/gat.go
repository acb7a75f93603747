package nn

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Slope is the slope below 0 of the leaky ReLU in attention scores.
const Slope = 0.2

// Heads is what all kinds of graph attention share: the number and width of heads, and
// whether their rows are averaged or concatenated.
type Heads struct {
	in, out  int
	Count    int
	Width    int // columns of a head
	averaged bool
	Biased   bool    // a bias is added to the rows
	Dropout  float64 // of attention
}

// NewHeads returns those of an attention at this place.
func NewHeads(s Spec, p Place) Heads {
	h := Heads{in: p.In, out: p.Out, Count: s.Heads, Biased: s.Head == HeadNone, Dropout: s.AttentionDropout}
	if p.Answers {
		h.Count, h.averaged = s.OutHeads, true
		h.Width = p.Out
	} else {
		h.Width = p.Out / s.Heads
	}
	return h
}

func newGAT(s Spec, p Place) Conv {
	h := NewHeads(s, p)
	if s.Version == 2 {
		return &gatv2{h}
	}
	return &gat{h}
}

// InWords describes what follows the scores of edges: s(u, v) of each head.
func (h *Heads) InWords() string {
	text := fmt.Sprintf(" Here leaky(s) = s where it is above 0, else %v * s. The shares of a vertex' in-edges = softmax of their scores, in each head.", Slope)
	if h.Dropout > 0 {
		text += fmt.Sprintf(" In training alone: dropout of %v of the shares.", h.Dropout)
	}
	text += " y of a head = the sum of share * z of the source over the in-edges, 0 where there are none."
	if h.averaged {
		return text + " y = the mean of the heads."
	}
	return text + " y = the heads side by side."
}

// Divided describes how the columns belong to heads.
func (h *Heads) Divided() string {
	if h.Count == 1 {
		return fmt.Sprintf("1 head of %d columns", h.Width)
	}
	return fmt.Sprintf("%d heads of %d columns each, side by side", h.Count, h.Width)
}

// Columns returns the total width of all heads.
func (h *Heads) Columns() int { return h.Count * h.Width }

// Attended returns the matrix for the rows of all heads: y itself, unless they are
// averaged.
func (h *Heads) Attended(c *Call, y tensor.Matrix) tensor.Matrix {
	if h.averaged && h.Count > 1 {
		return c.New(c.Targets(), h.Columns())
	}
	return y
}

// Join computes y from the rows of all heads.
func (h *Heads) Join(c *Call, y, all tensor.Matrix, e *tensor.Epilogue) {
	if h.averaged && h.Count > 1 {
		share, sum := 1/float64(h.Count), tensor.Matrix{}
		for i := range h.Count {
			c.Device.Combine(y, share, all.View(0, all.Rows, i*h.Width, h.Width), 1, sum)
			sum = y
		}
	}
	if e != nil {
		c.Device.Apply(y, y, e)
	}
	h.Freed(c, all)
}

// Freed frees the rows of all heads, or their gradient, unless they are y's.
func (h *Heads) Freed(c *Call, all tensor.Matrix) {
	if h.averaged && h.Count > 1 {
		c.Free(all)
	}
}

// Spread returns the gradient at the rows of all heads.
func (h *Heads) Spread(c *Call, dy tensor.Matrix) tensor.Matrix {
	if !h.averaged || h.Count == 1 {
		return dy
	}
	all := c.New(c.Targets(), h.Columns())
	for i := range h.Count {
		part := all.View(0, all.Rows, i*h.Width, h.Width)
		c.Device.Combine(part, 1/float64(h.Count), dy, 0, tensor.Matrix{})
	}
	return all
}

// gat is the convolution of Velickovic et al.: the score of an edge is the sum of a
// source's term and a target's term.
type gat struct{ Heads }

func (l *gat) Weights() []Weight {
	w := []Weight{
		{"weight", l.in, l.Columns(), Glorot(l.in, l.Columns())},
		{"attention.source", 1, l.Columns(), Glorot(l.Count, l.Width)},
		{"attention.target", 1, l.Columns(), Glorot(l.Count, l.Width)},
	}
	if l.Biased {
		w = append(w, Weight{Bias, 1, l.out, Zeros})
	}
	return w
}

func (l *gat) Words(use func(string) string) string {
	return "z = x * " + use("weight") + ": " + l.Divided() + ". The score of an edge (u, v) in a head = leaky(z(u) . " + use("attention.source") + " + z(v) . " + use("attention.target") +
		"), the products being those of the head's columns." + l.InWords()
}

func (l *gat) Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	x, left := l.apart(c.input.carried)
	if c.input.carried.None() {
		x, left = c.New(c.Sources(), l.Columns()), c.New(c.Sources(), l.Count)
		l.see(c, x, left)
	}
	l.attend(c, y, x, left, c.of(x), e)
}

// attend is the rest of Forward after the product, of which own are the targets' rows.
func (l *gat) attend(c *Call, y, x, left, own tensor.Matrix, e *tensor.Epilogue) {
	right := c.New(c.Targets(), l.Count)
	c.Device.HeadDot(right, own, c.Weight(2))
	all, stats := l.Attended(c, y), c.New(c.Targets(), 2*l.Count)
	c.Device.Attend(all, stats, &c.Block.CSR, x, left, right, Slope, c.DropAttention(l.Dropout), c.Block.Own)
	l.Join(c, y, all, e)
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
	return carried.View(0, carried.Rows, 0, l.Columns()), carried.View(0, carried.Rows, l.Columns(), l.Count)
}

func (l *gat) carries(*Call) int { return l.Columns() + l.Count }

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

func (l *gat) front() ([]frontTerm, int) { return []frontTerm{{weight: 0, own: 1}}, l.Columns() }

func (l *gat) finish(c *Call, y, sum tensor.Matrix, e *tensor.Epilogue) {
	left := c.New(c.Sources(), l.Count)
	c.Device.HeadDot(left, sum, c.Weight(1))
	l.attend(c, y, sum, left, c.Own(sum), e)
}

// finishBack returns the gradient at the product.
func (l *gat) finishBack(c *Call, dy tensor.Matrix) tensor.Matrix {
	x, left, right, stats := c.Kept[0], c.Kept[1], c.Kept[2], c.Kept[3]
	dh := c.New(c.Sources(), l.Columns())
	dleft, dright := c.New(c.Sources(), l.Count), c.New(c.Targets(), l.Count)
	dall := l.Spread(c, dy)
	c.Device.AttendBack(dh, dleft, dright, &c.Block.CSR, dall, stats, x, left, right, Slope, c.DropAttention(l.Dropout), c.Block.Own)
	c.Device.HeadDotBack(dh, c.Gradient(1), dleft, x, c.Weight(1))
	c.Device.HeadDotBack(c.Own(dh), c.Gradient(2), dright, c.Own(x), c.Weight(2))
	l.Freed(c, dall)
	c.Free(dleft, dright)
	return dh
}
