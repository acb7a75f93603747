package rows

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
)

func (f *Family) lossKernels() {
	f.sum()
	f.largest()
	f.binary()
}

// sum adds up n numbers.
func (f *Family) sum() {
	f.begin("Sum", "func(x *float32, n int) float32")
	x := param64("x")
	w := f.walkOf(param64("n"))
	sums := f.zero()
	w.each("sum", func(t *tail) { f.accumulate(sums, f.load(w.of(x), t), t) })
	Store(f.total(sums), ReturnIndex(0))
	end()
}

// largest is that of n numbers. What is no number may or may not be passed over.
func (f *Family) largest() {
	f.begin("Largest", "func(x *float32, n int) float32")
	x := param64("x")
	w := f.walkOf(param64("n"))
	least := f.number("MinusInfinity", float32(math.Inf(-1)))
	most := f.load(least, nil)
	w.each("largest", func(t *tail) {
		v := f.load(w.of(x), t)
		if t != nil {
			v = f.ifElse(choice(*t), v, f.load(least, nil))
		}
		for i := range most {
			VMAXPS(v[i], most[i], most[i])
		}
	})
	Store(f.reduced16(most, VMAXPS), ReturnIndex(0))
	end()
}

// binary is log(1+exp(x)), whose sum over n numbers it returns, and by times the
// derivative.
func (f *Family) binary() {
	f.begin("Binary", "func(y, x *float32, n int, by float32) float32")
	y, x := param64("y"), param64("x")
	w := f.walkOf(param64("n"))
	by, sums := f.broadcast("by"), f.zero()
	w.each("binary", func(t *tail) {
		v := f.load(w.of(x), t)
		e := f.exp(f.or(f.word("Sign", 0x80000000), v)) // of -|x|
		// The logarithm first: AVX2 has no register left for a number that waits for it.
		more := f.logOfMore(e)
		f.accumulate(sums, f.add(f.larger(v, f.zero()), more), t)
		one := f.load(f.number("One", 1), nil)
		over := f.div(by, f.add(e, one))
		f.store(f.mul(over, f.ifElse(f.negative(v), e, one)), w.of(y), t)
	})
	Store(f.total(sums), ReturnIndex(0))
	end()
}

// logOfMore is log(1+x) for x from 0 to 1: twice the inverse hyperbolic tangent of
// s = x/(2+x), which is at most 1/3.
func (f *Family) logOfMore(x block) block {
	s := f.div(x, f.add(f.number("Two", 2), x))
	square := f.mul(s, s)
	q := f.load(f.number("Log8", 2.0/17), nil)
	q = f.mulAdd(q, square, f.number("Log7", 2.0/15))
	q = f.mulAdd(q, square, f.number("Log6", 2.0/13))
	q = f.mulAdd(q, square, f.number("Log5", 2.0/11))
	q = f.mulAdd(q, square, f.number("Log4", 2.0/9))
	q = f.mulAdd(q, square, f.number("Log3", 2.0/7))
	q = f.mulAdd(q, square, f.number("Log2", 2.0/5))
	q = f.mulAdd(q, square, f.number("Log1", 2.0/3))
	q = f.mulAdd(q, square, f.number("Log0", 2))
	return f.mul(q, s)
}
