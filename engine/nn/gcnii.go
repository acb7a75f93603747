package nn

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// gcnii is the convolution of Chen et al.: T = (1-alpha)*A*X + alpha*H0, then (1-beta)*T
// + beta*T*W. H0 is the first representation, which is carried beside the rows; beta
// decreases with depth.
type gcnii struct {
	width       int
	alpha, beta float64
}

func newGCNII(s Spec, p Place) Conv {
	return &gcnii{p.Out, s.Alpha, math.Log(s.Theta/float64(p.Layer+1) + 1)}
}

func (l *gcnii) Weights() []Weight {
	return []Weight{{"weight", l.width, l.width, Fan(l.width)}}
}

func (l *gcnii) Words(use func(string) string) string {
	return fmt.Sprintf("a of a vertex = the sum of value * x of the source over its in-edges. t = (1 - alpha) * a + alpha * e, with alpha = %v, and e the vertex' row of the encoder's result. y = (1 - beta) * t + beta * t * %s, with beta = log(theta / layer + 1) = %v, layers counting from 1.",
		l.alpha, use("weight"), l.beta)
}

func (l *gcnii) Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	none := tensor.Matrix{}
	t := c.New(c.Targets(), l.width)
	c.Device.Aggregate(t, &c.Block.CSR, none, c.seen(), tensor.Sum, false, nil)
	c.Device.Combine(t, 1-l.alpha, t, l.alpha, c.Carry())
	c.Device.Combine(y, 1-l.beta, t, 0, none)
	c.Device.MatMul(y, t, l.scaled(c), tensor.NN, true, e)
	c.Kept[0] = t
}

func (l *gcnii) carries(*Call) int { return 0 }

func (l *gcnii) carry(*Call, tensor.Matrix) {}

func (l *gcnii) readsOwn() bool { return false }

func (l *gcnii) Backward(c *Call, dx, dy tensor.Matrix) {
	none := tensor.Matrix{}
	dw := c.New(l.width, l.width)
	c.Device.MatMul(dw, c.Kept[0], dy, tensor.TN, false, nil)
	c.Device.Combine(c.Gradient(0), 1, c.Gradient(0), l.beta, dw)
	dt := c.New(c.Targets(), l.width)
	c.Device.Combine(dt, 1-l.beta, dy, 0, none)
	c.Device.MatMul(dt, dy, l.scaled(c), tensor.NT, true, nil)
	c.Device.Combine(c.CarryGradient(), 1, c.CarryGradient(), l.alpha, dt)
	if !dx.None() {
		c.Device.Combine(dt, 1-l.alpha, dt, 0, none)
		c.Device.AggregateBack(dx, &c.Block.CSR, none, dt, tensor.Sum, false)
	}
	c.Free(dt, dw)
}

// scaled returns beta*W, which is smaller than beta*T. Backward reuses it.
func (l *gcnii) scaled(c *Call) tensor.Matrix {
	if c.Kept[1].None() {
		c.Kept[1] = c.New(l.width, l.width)
		c.Device.Combine(c.Kept[1], l.beta, c.Weight(0), 0, tensor.Matrix{})
	}
	return c.Kept[1]
}
