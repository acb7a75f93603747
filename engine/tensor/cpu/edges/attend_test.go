package edges

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// heads are numbers of heads and their widths.
var heads = [][2]int{{1, 1}, {8, 8}, {1, 7}, {1, 64}, {4, 64}, {1, 256}, {3, 5}, {2, 16}, {8, 7}, {5, 24}, {17, 3}, {1, 602}, {4, 0}, {6, 41}}

func TestHeadDot(t *testing.T) {
	with(t, func(t *testing.T, e *Edges, rng *rand.Rand) {
		for i, h := range heads {
			n := []int{0, 1, 37, 3000}[i%4]
			cols := h[0] * h[1]
			what := fmt.Sprintf("%d rows of %d heads of %d", n, h[0], h[1])
			x, a := random(rng, tensor.F32, n, cols), random(rng, tensor.F32, 1, cols)
			y := frame(rng, tensor.F32, n, h[0])
			want := y.wide()
			judge.HeadDot(want, x.wide(), a.wide())
			e.HeadDot(y.Matrix, x.Matrix, a.Matrix)
			y.equals(t, what, want, float64(h[1]))

			dx, da, dy := random(rng, tensor.F32, n, cols), random(rng, tensor.F32, 1, cols), random(rng, tensor.F32, n, h[0])
			wantX, wantA := dx.wide(), da.wide()
			judge.HeadDotBack(wantX, wantA, dy.wide(), x.wide(), a.wide())
			e.HeadDotBack(dx.Matrix, da.Matrix, dy.Matrix, x.Matrix, a.Matrix)
			dx.equals(t, what, wantX, 2)
			da.equals(t, what, wantA, float64(2+n/10))
		}
	})
}

// An attended is the operands of attention.
type attended struct {
	g     *tensor.CSR
	slope float32
	drop  tensor.Dropout
	own   int

	x, left, right, to, a, dy                    *framed
	y, stats, dx, dleft, dright, dto, da, y2, s2 *framed
}

func (s shape) attended(rng *rand.Rand, heads, width int, p float32) *attended {
	g := s.graph(rng)
	cols := heads * width
	o := &attended{g: g, slope: 0.2}
	if g.Cols > g.Rows {
		o.own = rng.IntN(g.Cols - g.Rows)
	}
	vertices := make([]uint32, max(g.Cols, g.Rows))
	for i := range vertices {
		vertices[i] = rng.Uint32()
	}
	o.drop = tensor.Dropout{P: p, Key: keyed.New(7, keyed.Dropout), Vertices: vertices}
	o.x, o.to = random(rng, tensor.F32, g.Cols, cols), random(rng, tensor.F32, g.Rows, cols)
	o.left, o.right = random(rng, tensor.F32, g.Cols, heads), random(rng, tensor.F32, g.Rows, heads)
	o.a, o.da = random(rng, tensor.F32, 1, cols), random(rng, tensor.F32, 1, cols)
	o.dy = random(rng, tensor.F32, g.Rows, cols)
	o.y, o.stats = frame(rng, tensor.F32, g.Rows, cols), frame(rng, tensor.F32, g.Rows, 2*heads)
	o.y2, o.s2 = frame(rng, tensor.F32, g.Rows, cols), frame(rng, tensor.F32, g.Rows, 2*heads)
	o.dx, o.dto = frame(rng, tensor.F32, g.Cols, cols), frame(rng, tensor.F32, g.Rows, cols)
	o.dleft, o.dright = frame(rng, tensor.F32, g.Cols, heads), frame(rng, tensor.F32, g.Rows, heads)
	return o
}

func (o *attended) first(e *Edges) {
	e.Attend(o.y.Matrix, o.stats.Matrix, o.g, o.x.Matrix, o.left.Matrix, o.right.Matrix, o.slope, o.drop, o.own)
	e.AttendBack(o.dx.Matrix, o.dleft.Matrix, o.dright.Matrix, o.g, o.dy.Matrix, o.stats.Matrix, o.x.Matrix, o.left.Matrix, o.right.Matrix, o.slope, o.drop, o.own)
}

func (o *attended) second(e *Edges) {
	e.AttendV2(o.y2.Matrix, o.s2.Matrix, o.g, o.x.Matrix, o.to.Matrix, o.a.Matrix, o.slope, o.drop, o.own)
	e.AttendV2Back(o.dx.Matrix, o.dto.Matrix, o.da.Matrix, o.g, o.dy.Matrix, o.s2.Matrix, o.x.Matrix, o.to.Matrix, o.a.Matrix, o.slope, o.drop, o.own)
}

func TestAttend(t *testing.T) {
	with(t, func(t *testing.T, e *Edges, rng *rand.Rand) {
		for i, s := range shapes {
			for j, h := range heads {
				what := fmt.Sprintf("%s, %d heads of %d", s, h[0], h[1])
				o := s.attended(rng, h[0], h[1], []float32{0, 0.6, 0}[(i+j)%3])
				y, stats, dx, dleft, dright := o.y.wide(), o.stats.wide(), o.dx.wide(), o.dleft.wide(), o.dright.wide()
				x, left, right := o.x.wide(), o.left.wide(), o.right.wide()
				judge.Attend(y, stats, o.g, x, left, right, o.slope, o.drop, o.own)
				judge.AttendBack(dx, dleft, dright, o.g, o.dy.wide(), stats, x, left, right, o.slope, o.drop, o.own)
				o.first(e)
				terms := float64(1 + h[1]/4 + s.hub/40)
				o.y.equals(t, what+": y", y, 4+float64(s.hub/100))
				o.stats.equals(t, what+": stats", stats, 2+4*float64(s.hub))
				o.dx.equals(t, what+": dx", dx, float64(8+s.hub/10))
				o.dright.equals(t, what+": dright", dright, 4*terms)
				o.dleft.equals(t, what+": dleft", dleft, 4*terms)
			}
		}
	})
}

func TestAttendV2(t *testing.T) {
	with(t, func(t *testing.T, e *Edges, rng *rand.Rand) {
		for i, s := range shapes {
			for j, h := range heads {
				what := fmt.Sprintf("%s, %d heads of %d", s, h[0], h[1])
				o := s.attended(rng, h[0], h[1], []float32{0, 0.6, 0}[(i+j)%3])
				// Scores of a sane size: a is as an initialisation would have it.
				o.a.each(func(_, _, at int) { o.a.whole[at] *= 1 / float32(8+h[1]) })
				y, stats, dx, dto, da := o.y2.wide(), o.s2.wide(), o.dx.wide(), o.dto.wide(), o.da.wide()
				x, to, a := o.x.wide(), o.to.wide(), o.a.wide()
				judge.AttendV2(y, stats, o.g, x, to, a, o.slope, o.drop, o.own)
				judge.AttendV2Back(dx, dto, da, o.g, o.dy.wide(), stats, x, to, a, o.slope, o.drop, o.own)
				o.second(e)
				terms := float64(1 + h[1]/4 + s.hub/40)
				o.y2.equals(t, what+": y", y, 4+float64(s.hub/100))
				o.s2.equals(t, what+": stats", stats, 2+4*float64(s.hub))
				o.dx.equals(t, what+": dx", dx, float64(8+s.hub/10)+terms)
				o.dto.equals(t, what+": dto", dto, 4*terms)
				o.da.equals(t, what+": da", da, terms*float64(20+s.hub/10))
			}
		}
	})
}
