package contract

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// ties returns numbers of which many are equal.
func (b *bench) ties(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(b.below(5)-2) / 2
	}
	return x
}

// maxima tests Max, which is exact. It keeps the first of equal elements.
func maxima(b *bench) {
	b.shaped(40, func(rows, cols int) {
		b.try(fmt.Sprintf("Max, %d x %d", rows, cols), func() {
			y, which := b.out("y", b.native(), rows, cols), b.out("which", tensor.I32, rows, cols)
			y.exact, which.exact = true, true
			xs := make([]*operand, 4)
			for i := range xs {
				xs[i] = b.in(fmt.Sprint("x", i), b.native(), rows, cols, b.ties(rows*cols))
			}
			b.both(func(s side) {
				for i, x := range xs {
					s.Max(s.of(y), s.of(which), s.of(x), i+3, i == 0)
				}
			})
		})
	})
}

func maximaBack(b *bench) {
	b.shaped(40, func(rows, cols int) {
		b.try(fmt.Sprintf("MaxBack, %d x %d", rows, cols), func() {
			chosen := make([]float64, rows*cols)
			for i := range chosen {
				chosen[i] = float64(b.below(4) - 1)
			}
			which := b.in("which", tensor.I32, rows, cols, chosen)
			dx, dy := b.out("dx", b.native(), rows, cols), b.in("dy", b.native(), rows, cols, b.fine(rows*cols))
			dx.exact = true
			index := b.below(3)
			b.both(func(s side) { s.MaxBack(s.of(dx), s.of(dy), s.of(which), index) })
		})
	})
}

func aggregatedMaxima(b *bench) {
	b.edged(40, false, func(g *graph, cols int, _ tensor.Type, name string) {
		b.try(fmt.Sprintf("AggregateMax, %s, %d columns", name, cols), func() {
			numbers := b.ties
			if b.coin() {
				numbers = b.numbers
			}
			from := b.in("x", b.native(), g.Cols, cols, numbers(g.Cols*cols))
			y, which := b.out("y", b.native(), g.Rows, cols), b.out("which", tensor.I32, g.Rows, cols)
			y.exact, which.exact = true, true
			b.both(func(s side) { s.AggregateMax(s.of(y), s.of(which), s.graph(g), s.of(from)) })
		})
	})
}

func aggregatedMaximaBack(b *bench) {
	b.edged(40, false, func(g *graph, cols int, _ tensor.Type, name string) {
		add := b.coin()
		b.try(fmt.Sprintf("AggregateMaxBack, %s, %d columns, add %v", name, cols, add), func() {
			x, y := b.in("x", b.native(), g.Cols, cols, b.ties(g.Cols*cols)), b.out("y", b.native(), g.Rows, cols)
			which, dy := b.out("which", tensor.I32, g.Rows, cols), b.in("dy", b.native(), g.Rows, cols, b.fine(g.Rows*cols))
			y.opaque, which.opaque = true, true
			b.keepSigns(x)
			dx := b.result("dx", g.Cols, cols, add)
			b.terms(func(s side) {
				s.AggregateMax(s.of(y), s.of(which), s.graph(g), s.of(x))
				s.AggregateMaxBack(s.of(dx), s.graph(g), s.of(dy), s.of(which), add)
			})
		})
	})
}
