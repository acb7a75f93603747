package contract

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A population is rows to be normalised.
type population struct {
	name string
	of   func(b *bench, rows, cols int) []float64
}

var populations = []population{
	{"plain", func(b *bench, rows, cols int) []float64 { return b.fine(rows * cols) }},
	{"far from 0", func(b *bench, rows, cols int) []float64 {
		x := b.numbers(rows * cols)
		for i := range x {
			x[i] += 1000
		}
		return x
	}},
	{"constant", func(_ *bench, rows, cols int) []float64 { return repeated(.75, rows*cols) }},
	{"large", func(b *bench, rows, cols int) []float64 {
		x := b.fine(rows * cols)
		for i := range x {
			x[i] = float64(float32(x[i] * 1e6))
		}
		return x
	}},
}

// deviations returns 1/deviation and the largest magnitude of each row.
func deviations(x []float64, rows, cols int) (inverse, largest []float64) {
	inverse, largest = make([]float64, rows), make([]float64, rows)
	for i := range rows {
		mean, variance := 0.0, 0.0
		for _, v := range x[i*cols:][:cols] {
			mean += v / float64(cols)
			largest[i] = max(largest[i], math.Abs(v))
		}
		for _, v := range x[i*cols:][:cols] {
			variance += (v - mean) * (v - mean) / float64(cols)
		}
		inverse[i] = 1 / math.Sqrt(variance+1e-5)
	}
	return inverse, largest
}

// normed calls f with shapes that have columns.
func (b *bench) normed(f func(p population, rows, cols int)) {
	for _, p := range populations {
		for _, cols := range ragged {
			f(p, b.size(), cols)
		}
		f(p, wide[0], wide[1])
		f(p, large[0], large[1])
	}
}

func norms(b *bench) {
	b.normed(func(p population, rows, cols int) {
		r := b.recipe()
		r.bias = false
		b.try(fmt.Sprintf("LayerNorm, %d x %d, %s, %s", rows, cols, p.name, r), func() {
			data := p.of(b, rows, cols)
			x := b.in("x", b.native(), rows, cols, data)
			gamma, beta := b.in("gamma", b.native(), 1, cols, b.fine(cols)), b.in("beta", b.native(), 1, cols, b.fine(cols))
			y, stats, e := b.out("y", b.native(), rows, cols), b.out("stats", b.native(), rows, 2), b.ending(r, rows, cols)
			stats.opaque = true
			inverse, largest := deviations(data, rows, cols)
			y.slack, y.scale = 1+e.slack(), make([]float64, rows*cols)
			for i := range y.scale {
				// The deviation itself is a sum whose terms have rounding errors relative
				// to their magnitude.
				row := i / cols
				y.scale[i] = 2 * largest[row] * inverse[row] / (1 - float64(r.p))
			}
			b.both(func(s side) {
				s.LayerNorm(s.of(y), s.of(stats), s.of(x), s.of(gamma), s.of(beta), &tensor.Epilogue{Activation: r.activation, Dropout: e.dropout})
			})
		})
	})
}

func normsBack(b *bench) {
	b.normed(func(p population, rows, cols int) {
		alias := b.coin()
		b.try(fmt.Sprintf("LayerNormBack, %d x %d, %s, dx is dy: %v", rows, cols, p.name, alias), func() {
			data, slope := p.of(b, rows, cols), b.fine(rows*cols)
			x, dy := b.in("x", b.native(), rows, cols, data), b.in("dy", b.native(), rows, cols, slope)
			gamma, beta := b.in("gamma", b.native(), 1, cols, b.fine(cols)), b.in("beta", b.native(), 1, cols, b.fine(cols))
			y, stats := b.out("y", b.native(), rows, cols), b.out("stats", b.native(), rows, 2)
			y.opaque, stats.opaque = true, true
			dgamma, dbeta := b.inout("dgamma", b.native(), 1, cols, b.fine(cols)), b.inout("dbeta", b.native(), 1, cols, b.fine(cols))
			dx := dy
			if !alias {
				dx = b.out("dx", b.native(), rows, cols)
			}
			dx.output = true
			inverse, largest := deviations(data, rows, cols)
			dx.scale, dgamma.scale = make([]float64, rows*cols), make([]float64, cols)
			dbeta.slack, dgamma.slack = 1, 1
			for i := range dx.scale {
				row, size := i/cols, 1+largest[i/cols]*inverse[i/cols]
				dx.scale[i] = 3 * inverse[row] * size * size
				dgamma.scale[i%cols] += 2 * math.Abs(slope[i]) * size
				dbeta.slack = max(dbeta.slack, float64(rows))
			}
			b.both(func(s side) {
				s.LayerNorm(s.of(y), s.of(stats), s.of(x), s.of(gamma), s.of(beta), nil)
				s.LayerNormBack(s.of(dx), s.of(dgamma), s.of(dbeta), s.of(dy), s.of(x), s.of(stats), s.of(gamma))
			})
		})
	})
}
