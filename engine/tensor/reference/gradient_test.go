package reference_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A variable is an operand and the gradient that was found for it.
type variable struct {
	name    string
	x, grad tensor.Matrix
}

// matches compares gradients with central differences of what forward returns.
func (b *table) matches(forward func() float64, variables ...variable) {
	b.Helper()
	const h = 1e-5
	for _, v := range variables {
		for i := range v.x.Rows {
			for j := range v.x.Cols {
				at := &v.x.F64()[i*v.x.Stride+j]
				was := *at
				*at = was + h
				up := forward()
				*at = was - h
				down := forward()
				*at = was
				want, got := (up-down)/(2*h), v.grad.F64()[i*v.grad.Stride+j]
				if !(math.Abs(got-want) <= 1e-7*(1+math.Abs(want))) {
					b.Errorf("gradient of %s[%d,%d] is %.9f, and %.9f by differences", v.name, i, j, got, want)
				}
			}
		}
	}
}

func epilogues(yield func(name string, e *tensor.Epilogue)) {
	for _, a := range []tensor.Activation{tensor.Linear, tensor.ReLU, tensor.ELU} {
		for _, p := range []float32{0, .4} {
			yield(fmt.Sprintf("activation %d, dropout %v", a, p), &tensor.Epilogue{Activation: a, Dropout: dropout(p)})
		}
	}
}

func TestApplyBack(t *testing.T) {
	epilogues(func(name string, e *tensor.Epilogue) {
		t.Run(name, func(t *testing.T) {
			b := lay(t)
			x, y, dy, bias := b.random(5, 7), b.random(5, 7), b.random(5, 7), b.random(1, 7)
			e.Bias = bias
			forward := func() float64 { b.Apply(y, x, e); return b.dot(y, dy) }
			forward()
			dx, dbias := b.random(5, 7), b.random(1, 7)
			before := b.zeros(1, 7)
			b.Combine(before, 1, dbias, 0, none)
			b.ApplyBack(dx, dbias, dy, y, e)
			b.Combine(dbias, 1, dbias, -1, before)
			b.matches(forward, variable{"x", x, dx}, variable{"bias", bias, dbias})
		})
	})
}

func TestMatMulBack(t *testing.T) {
	shapes := []struct {
		shape        tensor.Shape
		a, b         [2]int
		gradA, gradB func(b *table, da, db, dc, x, y tensor.Matrix)
	}{
		{shape: tensor.NN, a: [2]int{3, 4}, b: [2]int{4, 5}, gradA: func(b *table, da, _, dc, _, y tensor.Matrix) {
			b.MatMul(da, dc, y, tensor.NT, false, nil)
		}, gradB: func(b *table, _, db, dc, x, _ tensor.Matrix) { b.MatMul(db, x, dc, tensor.TN, false, nil) }},
		{shape: tensor.TN, a: [2]int{4, 3}, b: [2]int{4, 5}, gradA: func(b *table, da, _, dc, _, y tensor.Matrix) {
			b.MatMul(da, y, dc, tensor.NT, false, nil)
		}, gradB: func(b *table, _, db, dc, x, _ tensor.Matrix) { b.MatMul(db, x, dc, tensor.NN, false, nil) }},
		{shape: tensor.NT, a: [2]int{3, 4}, b: [2]int{5, 4}, gradA: func(b *table, da, _, dc, _, y tensor.Matrix) {
			b.MatMul(da, dc, y, tensor.NN, false, nil)
		}, gradB: func(b *table, _, db, dc, x, _ tensor.Matrix) { b.MatMul(db, dc, x, tensor.TN, false, nil) }},
	}
	for _, s := range shapes {
		t.Run(fmt.Sprint("shape ", s.shape), func(t *testing.T) {
			b := lay(t)
			x, y := b.random(s.a[0], s.a[1]), b.random(s.b[0], s.b[1])
			c, dc := b.random(3, 5), b.random(3, 5)
			da, db := b.random(s.a[0], s.a[1]), b.random(s.b[0], s.b[1])
			s.gradA(b, da, db, dc, x, y)
			s.gradB(b, da, db, dc, x, y)
			b.matches(func() float64 {
				b.MatMul(c, x, y, s.shape, false, nil)
				return b.dot(c, dc)
			}, variable{"a", x, da}, variable{"b", y, db})
		})
	}
}

func TestLayerNormBack(t *testing.T) {
	epilogues(func(name string, e *tensor.Epilogue) {
		t.Run(name, func(t *testing.T) {
			b := lay(t)
			x, gamma, beta := b.random(5, 7), b.random(1, 7), b.random(1, 7)
			y, stats, dy := b.random(5, 7), b.random(5, 2), b.random(5, 7)
			forward := func() float64 { b.LayerNorm(y, stats, x, gamma, beta, e); return b.dot(y, dy) }
			forward()
			dx, dgamma, dbeta := b.random(5, 7), b.zeros(1, 7), b.zeros(1, 7)
			b.ApplyBack(dx, none, dy, y, e)
			b.LayerNormBack(dx, dgamma, dbeta, dx, x, stats, gamma)
			b.matches(forward, variable{"x", x, dx}, variable{"gamma", gamma, dgamma}, variable{"beta", beta, dbeta})
		})
	})
}

func TestAggregateBack(t *testing.T) {
	for _, how := range []tensor.Aggregation{tensor.Sum, tensor.Mean} {
		for _, weights := range []string{"none", "of the graph", "given"} {
			t.Run(fmt.Sprintf("%d, weights %s", how, weights), func(t *testing.T) {
				b := lay(t)
				g, values := graph(weights == "of the graph"), none
				if weights == "given" {
					values = b.random(1, g.Entries())
				}
				x, y, dy, dx := b.random(7, 3), b.random(5, 3), b.random(5, 3), b.random(7, 3)
				b.AggregateBack(dx, g, values, dy, how, false)
				b.matches(func() float64 {
					b.Aggregate(y, g, values, x, how, false, nil)
					return b.dot(y, dy)
				}, variable{"x", x, dx})
			})
		}
	}
}

func TestAggregateMaxBack(t *testing.T) {
	b := lay(t)
	g, which := graph(false), b.arena.Alloc(tensor.I32, 5, 3)
	x, y, dy, dx := b.random(7, 3), b.random(5, 3), b.random(5, 3), b.random(7, 3)
	forward := func() float64 { b.AggregateMax(y, which, g, x); return b.dot(y, dy) }
	forward()
	b.AggregateMaxBack(dx, g, dy, which, false)
	b.matches(forward, variable{"x", x, dx})
}

func TestMaxBack(t *testing.T) {
	b := lay(t)
	y, dy, which := b.random(4, 6), b.random(4, 6), b.arena.Alloc(tensor.I32, 4, 6)
	var vs []variable
	for i := range 3 {
		vs = append(vs, variable{fmt.Sprint("x", i), b.random(4, 6), b.random(4, 6)})
	}
	forward := func() float64 {
		for i, v := range vs {
			b.Max(y, which, v.x, i, i == 0)
		}
		return b.dot(y, dy)
	}
	forward()
	for i, v := range vs {
		b.MaxBack(v.grad, dy, which, i)
	}
	b.matches(forward, vs...)
}

func TestGatherBack(t *testing.T) {
	b := lay(t)
	x, y, dy, dx := b.random(7, 3), b.random(4, 3), b.random(4, 3), b.zeros(7, 3)
	parts := []tensor.Part{{First: 10, X: x.RowRange(0, 2)}, {First: 12, X: x.RowRange(2, 5)}}
	b.ScatterAdd(dx, dy, []int32{6, 1, 2, 6})
	b.matches(func() float64 {
		b.Gather(y, parts, []uint32{16, 11, 12, 16})
		return b.dot(y, dy)
	}, variable{"x", x, dx})
}

func TestHeadDotBack(t *testing.T) {
	b := lay(t)
	x, a, y, dy := b.random(5, 6), b.random(1, 6), b.random(5, 3), b.random(5, 3)
	dx, da := b.zeros(5, 6), b.zeros(1, 6)
	b.HeadDotBack(dx, da, dy, x, a)
	b.matches(func() float64 { b.HeadDot(y, x, a); return b.dot(y, dy) },
		variable{"x", x, dx}, variable{"a", a, da})
}

func TestAttendBack(t *testing.T) {
	for _, p := range []float32{0, .5} {
		t.Run(fmt.Sprint("dropout ", p), func(t *testing.T) {
			b := lay(t)
			g, drop, own := graph(false), dropout(p), 2
			x, left, right := b.random(7, 6), b.random(7, 2), b.random(5, 2)
			y, stats, dy := b.random(5, 6), b.random(5, 4), b.random(5, 6)
			forward := func() float64 {
				b.Attend(y, stats, g, x, left, right, .2, drop, own)
				return b.dot(y, dy)
			}
			forward()
			dx, dleft, dright := b.random(7, 6), b.random(7, 2), b.random(5, 2)
			b.AttendBack(dx, dleft, dright, g, dy, stats, x, left, right, .2, drop, own)
			b.matches(forward, variable{"x", x, dx}, variable{"left", left, dleft}, variable{"right", right, dright})
		})
	}
}

func TestAttendV2Back(t *testing.T) {
	for _, p := range []float32{0, .5} {
		t.Run(fmt.Sprint("dropout ", p), func(t *testing.T) {
			b := lay(t)
			g, drop, own := graph(false), dropout(p), 2
			x, to, a := b.random(7, 6), b.random(5, 6), b.random(1, 6)
			y, stats, dy := b.random(5, 6), b.random(5, 4), b.random(5, 6)
			forward := func() float64 {
				b.AttendV2(y, stats, g, x, to, a, .2, drop, own)
				return b.dot(y, dy)
			}
			forward()
			dx, dto, da := b.random(7, 6), b.random(5, 6), b.zeros(1, 6)
			b.AttendV2Back(dx, dto, da, g, dy, stats, x, to, a, .2, drop, own)
			b.matches(forward, variable{"x", x, dx}, variable{"to", to, dto}, variable{"a", a, da})
		})
	}
}

func TestLossGradients(t *testing.T) {
	labels := []int32{2, -1, 0, 3, 3}
	b := lay(t)
	for name, loss := range map[string]func(dz, z tensor.Matrix, labels []int32, scale float64) (float64, int){
		"CrossEntropy": b.CrossEntropy, "BinaryCrossEntropy": b.BinaryCrossEntropy,
	} {
		t.Run(name, func(t *testing.T) {
			b := lay(t)
			z, dz := b.random(5, 4), b.random(5, 4)
			loss(dz, z, labels, .3)
			b.matches(func() float64 { l, _ := loss(none, z, labels, 1); return .3 * l }, variable{"z", z, dz})
		})
	}
}
