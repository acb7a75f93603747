package contract

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// slope is the slope of attention's scores below 0.
const slope = .2

// A neighbourhood is the input of an attention case: edges, heads and dropout.
type neighbourhood struct {
	*graph
	name         string
	heads, width int
	drop         tensor.Dropout
	own          int
	hot          float64 // magnitude of scores
}

func (n *neighbourhood) cols() int { return n.heads * n.width }

// attended calls f with graphs whose targets are a run of their sources.
func (b *bench) attended(f func(n *neighbourhood)) {
	next := func(g *graph, own, heads, width int) {
		n := &neighbourhood{graph: g, heads: heads, width: width, own: own, hot: []float64{1, 1, 60}[b.below(3)]}
		n.drop = b.dropout([]float32{0, 0, .3, .6}[b.below(4)], g.Cols)
		n.name = fmt.Sprintf("%d x %d with %d entries from %d, own %d, %d heads of %d, dropout %v, scores to %g",
			g.Rows, g.Cols, g.Entries(), g.Indptr[0], own, heads, width, n.drop.P, n.hot)
		f(n)
	}
	widths := []int{1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65}
	for i := range 40 {
		rows := b.size()
		own := b.below(3) * b.below(20)
		next(b.graph(rows, own+rows+b.below(40), 1+b.below(20), false), own, 1+i%8, widths[b.below(len(widths))])
	}
	next(b.withDegrees(40, make([]int, 33), false), 3, 2, 8)
	next(b.graph(0, 7, 3, false), 2, 2, 8)
	// Rows and columns with enough entries that a device may split them.
	next(b.hubs(65, 600, 2500, false), 500, 8, 33)
	next(b.hubs(1501, 1600, 3, false), 50, 8, 32)
	next(b.hubs(2050, 2100, 1100, false), 7, 3, 5)
}

// hold returns an operand for scores, large ones if the case asks for it.
func (n *neighbourhood) hold(b *bench, name string, rows, cols int) *operand {
	x := b.fine(rows * cols)
	for i := range x {
		x[i] = float64(float32(x[i] * n.hot))
	}
	o := b.in(name, b.native(), rows, cols, x)
	b.keepSigns(o)
	return o
}

// An edgeTerm describes one head of one entry: its weight after the softmax, whether it
// is kept, and the magnitude of the terms of its score's gradient.
type edgeTerm struct {
	source, target, head int
	alpha, kept, grad    float64
}

// edgeTerms computes them for each head of each entry.
func (n *neighbourhood) edgeTerms(x, dy []float64, score func(target, source, head int) float64) []edgeTerm {
	var all []edgeTerm
	for t := range n.Rows {
		sources := n.Indices[n.Indptr[t]:n.Indptr[t+1]]
		for h := range n.heads {
			largest, sum, mean := math.Inf(-1), 0.0, 0.0
			for _, s := range sources {
				largest = max(largest, score(t, int(s), h))
			}
			row := len(all)
			for _, s := range sources {
				e := edgeTerm{source: int(s), target: t, head: h, alpha: math.Exp(score(t, int(s), h) - largest), kept: 1}
				if p := n.drop.P; p != 0 {
					e.kept = 1 / (1 - float64(p))
					key := n.drop.Key.With(uint64(n.drop.Vertices[n.own+t])).With(uint64(n.drop.Vertices[s]))
					if key.Column(uint32(h)) < keyed.Threshold(float64(p)) {
						e.kept = 0
					}
				}
				sum += e.alpha
				all = append(all, e)
			}
			for i := row; i < len(all); i++ {
				e := &all[i]
				e.alpha /= sum
				for d := range n.width {
					j := h*n.width + d
					e.grad += e.kept * math.Abs(dy[t*n.cols()+j]*x[e.source*n.cols()+j])
				}
				mean += e.alpha * e.grad
			}
			for i := row; i < len(all); i++ {
				all[i].grad = all[i].alpha * (all[i].grad + mean)
			}
		}
	}
	return all
}

func leaky(x float64) float64 {
	if x < 0 {
		return x * float64(float32(slope))
	}
	return x
}

func headDots(b *bench) {
	b.headed(func(rows, heads, width int) {
		b.try(fmt.Sprintf("HeadDot, %d rows, %d heads of %d", rows, heads, width), func() {
			x := b.in("x", b.native(), rows, heads*width, b.fine(rows*heads*width))
			a, y := b.in("a", b.native(), 1, heads*width, b.fine(heads*width)), b.out("y", b.native(), rows, heads)
			b.terms(func(s side) { s.HeadDot(s.of(y), s.of(x), s.of(a)) })
		})
	})
}

func headDotsBack(b *bench) {
	b.headed(func(rows, heads, width int) {
		b.try(fmt.Sprintf("HeadDotBack, %d rows, %d heads of %d", rows, heads, width), func() {
			cols := heads * width
			x, a := b.in("x", b.native(), rows, cols, b.fine(rows*cols)), b.in("a", b.native(), 1, cols, b.fine(cols))
			dy := b.in("dy", b.native(), rows, heads, b.fine(rows*heads))
			dx := b.inout("dx", b.native(), rows, cols, b.fine(rows*cols))
			da := b.inout("da", b.native(), 1, cols, b.fine(cols))
			b.terms(func(s side) { s.HeadDotBack(s.of(dx), s.of(da), s.of(dy), s.of(x), s.of(a)) })
		})
	})
}

func (b *bench) headed(f func(rows, heads, width int)) {
	for heads := 1; heads <= 8; heads++ {
		for _, width := range []int{1, 3, 8, 16, 17, 33, 64} {
			f(b.size(), heads, width)
		}
	}
	f(5003, 3, 7)
	f(2050, 8, 8)
}

func attentions(b *bench) {
	b.attended(func(n *neighbourhood) {
		b.try("Attend, "+n.name, func() {
			x := b.in("x", b.native(), n.Cols, n.cols(), b.fine(n.Cols*n.cols()))
			left, right := n.hold(b, "left", n.Cols, n.heads), n.hold(b, "right", n.Rows, n.heads)
			y, stats := b.out("y", b.native(), n.Rows, n.cols()), b.out("stats", b.native(), n.Rows, 2*n.heads)
			stats.opaque, y.factor = true, 1+2*n.hot
			b.terms(func(s side) {
				s.Attend(s.of(y), s.of(stats), n.CSR, s.of(x), s.of(left), s.of(right), slope, n.drop, n.own)
			})
		})
	})
}

func attentionsBack(b *bench) {
	b.attended(func(n *neighbourhood) {
		b.try("AttendBack, "+n.name, func() {
			x := b.in("x", b.native(), n.Cols, n.cols(), b.fine(n.Cols*n.cols()))
			dy := b.in("dy", b.native(), n.Rows, n.cols(), b.fine(n.Rows*n.cols()))
			left, right := n.hold(b, "left", n.Cols, n.heads), n.hold(b, "right", n.Rows, n.heads)
			y, stats := b.out("y", b.native(), n.Rows, n.cols()), b.out("stats", b.native(), n.Rows, 2*n.heads)
			y.opaque, stats.opaque = true, true
			dx := b.out("dx", b.native(), n.Cols, n.cols())
			dleft, dright := b.out("dleft", b.native(), n.Cols, n.heads), b.out("dright", b.native(), n.Rows, n.heads)
			dx.scale, dleft.scale, dright.scale = make([]float64, len(dx.before)), make([]float64, len(dleft.before)), make([]float64, len(dright.before))
			for _, o := range []*operand{dx, dleft, dright} {
				o.factor = 1 + 2*n.hot
			}
			terms := n.edgeTerms(x.before, dy.before, func(t, s, h int) float64 {
				return leaky(left.before[s*n.heads+h] + right.before[t*n.heads+h])
			})
			for _, e := range terms {
				dleft.scale[e.source*n.heads+e.head] += e.grad
				dright.scale[e.target*n.heads+e.head] += e.grad
				n.spreadBack(dx.scale, dy.before, e)
			}
			b.both(func(s side) {
				s.Attend(s.of(y), s.of(stats), n.CSR, s.of(x), s.of(left), s.of(right), slope, n.drop, n.own)
				s.AttendBack(s.of(dx), s.of(dleft), s.of(dright), n.CSR, s.of(dy), s.of(stats), s.of(x), s.of(left), s.of(right), slope, n.drop, n.own)
			})
		})
	})
}

// spreadBack adds the contribution of the sum over entries to dx.
func (n *neighbourhood) spreadBack(dx, dy []float64, e edgeTerm) {
	for j := e.head * n.width; j < (e.head+1)*n.width; j++ {
		dx[e.source*n.cols()+j] += e.kept * e.alpha * math.Abs(dy[e.target*n.cols()+j])
	}
}
