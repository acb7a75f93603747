package contract

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// large is a shape of several chunks, wide one of long rows.
var (
	large = [2]int{2051, 67}
	wide  = [2]int{5, 1433}
)

// shaped calls f with ragged shapes, a wide one and a large one.
func (b *bench) shaped(times int, f func(rows, cols int)) {
	for range times {
		f(b.size(), b.size())
	}
	f(wide[0], wide[1])
	f(large[0], large[1])
}

// combinations tests Combine, including conversions. A BF16 result has its own rounding
// error, unless it is a plain copy.
func combinations(b *bench) {
	numbers := []tensor.Type{b.native(), b.native(), tensor.F32, tensor.BF16}
	factors := []float64{1, 1, 0, -1, .5, 1.7}
	b.shaped(150, func(rows, cols int) {
		ty, ta, tb := numbers[b.below(4)], numbers[b.below(4)], numbers[b.below(4)]
		alpha, beta := factors[b.below(len(factors))], factors[b.below(len(factors))]
		two, alias := b.coin(), b.below(4)
		switch {
		case alias == 0:
			ty = ta
		case alias == 1 && two:
			ty = tb
		}
		title := fmt.Sprintf("Combine, %d x %d, %s = %g * %s + %g * %s (%v), alias %d", rows, cols, ty, alpha, ta, beta, tb, two, alias)
		b.try(title, func() {
			x := b.in("a", ta, rows, cols, b.fine(rows*cols))
			var z *operand
			if two {
				z = b.in("b", tb, rows, cols, b.fine(rows*cols))
			}
			var y *operand
			switch {
			case alias == 0:
				y = x
			case alias == 1 && two:
				y = z
			default:
				y = b.out("y", ty, rows, cols)
			}
			y.output = true
			y.exact = !two && alpha == 1 && ty != tensor.F64
			if ty == tensor.BF16 && b.tolerance > 0 {
				y.factor = 0x1p-8 / b.tolerance
			}
			b.terms(func(s side) { s.Combine(s.of(y), s.number(alpha), s.of(x), s.number(beta), s.of(z)) })
		})
	})
	for _, t := range []tensor.Type{b.native(), tensor.F32, tensor.BF16} {
		b.try(fmt.Sprintf("Combine, copy of special numbers to %s", t), func() {
			x := make([]float64, len(special))
			for i := range x {
				x[i] = float64(float32(special[i]))
			}
			from, y := b.in("a", b.native(), 1, len(x), x), b.out("y", t, 1, len(x))
			y.exact = true
			b.both(func(s side) { s.Combine(s.of(y), 1, s.of(from), 0, tensor.Matrix{}) })
		})
	}
}

// everyRecipe calls f with each epilogue on several shapes.
func (b *bench) everyRecipe(f func(r recipe, rows, cols int)) {
	for _, r := range recipes() {
		b.shaped(6, func(rows, cols int) { f(r, rows, cols) })
	}
}

func epilogues(b *bench) {
	b.everyRecipe(func(r recipe, rows, cols int) {
		alias := b.coin()
		b.try(fmt.Sprintf("Apply, %d x %d, %s, y is x: %v", rows, cols, r, alias), func() {
			x := b.in("x", b.native(), rows, cols, b.wild(rows*cols, 100))
			y, e := x, b.ending(r, rows, cols)
			if !alias {
				y = b.out("y", b.native(), rows, cols)
			}
			y.output, y.slack = true, e.slack()
			b.terms(func(s side) { s.Apply(s.of(y), s.of(x), s.epilogue(e)) })
		})
	})
	// NaN must not become a number, or errors go unnoticed.
	for _, a := range []tensor.Activation{tensor.Linear, tensor.ReLU, tensor.ELU} {
		b.try(fmt.Sprintf("Apply of NaN and infinities, activation %d", a), func() {
			data := b.fine(3 * 67)
			for i := range data {
				data[i] = []float64{data[i], math.NaN(), math.Inf(1)}[b.below(3)]
			}
			x, y := b.in("x", b.native(), 3, 67, data), b.out("y", b.native(), 3, 67)
			y.slack = 1
			b.both(func(s side) { s.Apply(s.of(y), s.of(x), &tensor.Epilogue{Activation: a}) })
		})
	}
}

// epiloguesBack tests ApplyBack on what each side itself has stored.
func epiloguesBack(b *bench) {
	b.everyRecipe(func(r recipe, rows, cols int) {
		alias := b.coin()
		b.try(fmt.Sprintf("ApplyBack, %d x %d, %s, dx is dy: %v", rows, cols, r, alias), func() {
			y := b.inout("y", b.native(), rows, cols, b.fine(rows*cols))
			dy := b.in("dy", b.native(), rows, cols, b.fine(rows*cols))
			dx, e := dy, b.ending(r, rows, cols)
			if !alias {
				dx = b.out("dx", b.native(), rows, cols)
			}
			dx.output, y.opaque = true, true
			var dbias *operand
			if b.below(4) > 0 {
				dbias = b.inout("dbias", b.native(), 1, cols, b.fine(cols))
			}
			b.terms(func(s side) {
				p := s.epilogue(e)
				s.Apply(s.of(y), s.of(y), p)
				s.ApplyBack(s.of(dx), s.of(dbias), s.of(dy), s.of(y), p)
			})
		})
	})
}

func scatters(b *bench) {
	b.shaped(40, func(rows, cols int) {
		n := b.size()
		if rows == 0 {
			n = 0
		}
		if rows == large[0] {
			n = 2 * rows
		}
		b.try(fmt.Sprintf("ScatterAdd, %d rows to %d x %d", n, rows, cols), func() {
			to := make([]int32, n)
			for i := range to {
				to[i] = int32(b.below(min(rows, 1+b.below(rows))))
			}
			y := b.inout("y", b.native(), rows, cols, b.fine(rows*cols))
			x := b.in("x", b.native(), n, cols, b.fine(n*cols))
			b.terms(func(s side) { s.ScatterAdd(s.of(y), s.of(x), to) })
		})
	})
}

func scaledRows(b *bench) {
	b.shaped(40, func(rows, cols int) {
		alias := b.coin()
		b.try(fmt.Sprintf("ScaleRows, %d x %d, y is x: %v", rows, cols, alias), func() {
			x := b.in("x", b.native(), rows, cols, b.fine(rows*cols))
			scale, y := b.in("scale", b.native(), rows, 1, b.fine(rows)), x
			if !alias {
				y = b.out("y", b.native(), rows, cols)
			}
			y.output = true
			b.terms(func(s side) { s.ScaleRows(s.of(y), s.of(x), s.of(scale)) })
		})
	})
}

// columnSums tests ColumnSums, also with many rows, which are split into chunks.
func columnSums(b *bench) {
	sum := func(rows, cols int) {
		b.try(fmt.Sprintf("ColumnSums, %d x %d", rows, cols), func() {
			sums := b.inout("sums", b.native(), 1, cols, b.fine(cols))
			x := b.in("x", b.native(), rows, cols, b.fine(rows*cols))
			b.terms(func(s side) { s.ColumnSums(s.of(sums), s.of(x)) })
		})
	}
	b.shaped(40, sum)
	sum(50021, 3)
}

// finites tests that Finite checks each element, and nothing between rows.
func finites(b *bench) {
	for _, bad := range []float64{0, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat32} {
		for _, shape := range [][2]int{{0, 5}, {5, 0}, {1, 1}, {3, 17}, {7, 64}, {2, 130}, {33, 31}, {4099, 3}} {
			rows, cols := shape[0], shape[1]
			for _, at := range []int{0, rows*cols - 1, rows * cols / 2, b.below(rows*cols + 1)} {
				at = max(0, min(at, rows*cols-1))
				b.try(fmt.Sprintf("Finite, %d x %d, %g at %d", rows, cols, bad, at), func() {
					x := b.fine(rows * cols)
					if len(x) > 0 {
						x[at] = bad
					}
					m := b.in("m", b.native(), rows, cols+1, make([]float64, rows*(cols+1)))
					d := b.devices[judged]
					d.Write(m.view[judged].View(0, rows, 0, cols), x)
					m.opaque = true
					d.Write(m.view[judged].View(0, rows, cols, 1), repeated(math.NaN(), rows))
					want := len(x) == 0 || !math.IsNaN(bad) && !math.IsInf(bad, 0)
					if got := d.Finite(m.view[judged].View(0, rows, 0, cols)); got != want {
						b.fault("it says %v", got)
					}
				})
			}
		}
	}
}
