package rows

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// along writes a kernel that goes once along n numbers.
func (f *Family) along(name, arguments string, prepare func(w *walk) func(t *tail)) {
	f.begin(name, "func("+arguments+")")
	w := f.walkOf(param64("n"))
	w.each("numbers", prepare(w))
	end()
}

func (f *Family) elementKernels() {
	f.along("Add", "y, x *float32, n int", func(w *walk) func(*tail) {
		y, x := param64("y"), param64("x")
		return func(t *tail) { f.store(f.add(f.load(w.of(y), t), f.load(w.of(x), t)), w.of(y), t) }
	})
	f.along("Scale", "y, x *float32, n int, by float32", func(w *walk) func(*tail) {
		y, x, by := param64("y"), param64("x"), f.broadcast("by")
		return func(t *tail) { f.store(f.mul(by, f.load(w.of(x), t)), w.of(y), t) }
	})
	f.along("Combine", "y, a, b *float32, n int, alpha, beta float32", func(w *walk) func(*tail) {
		y, a, b := param64("y"), param64("a"), param64("b")
		alpha, beta := f.broadcast("alpha"), f.broadcast("beta")
		return func(t *tail) {
			f.store(f.addProduct(f.mul(alpha, f.load(w.of(a), t)), f.load(w.of(b), t), beta), w.of(y), t)
		}
	})
	f.along("Max", "y *float32, which *int32, x *float32, n int, index int32", func(w *walk) func(*tail) {
		y, which, x, index := param64("y"), param64("which"), param64("x"), f.broadcast("index")
		return func(t *tail) {
			old, v := f.load(w.of(y), t), f.load(w.of(x), t)
			c := f.above(v, old)
			f.store(f.ifElse(c, v, old), w.of(y), t)
			f.store(f.ifElse(c, index, f.load(w.of(which), t)), w.of(which), t)
		}
	})
	f.along("MaxBack", "dx, dy *float32, which *int32, n int, index int32", func(w *walk) func(*tail) {
		dx, dy, which, index := param64("dx"), param64("dy"), param64("which"), f.broadcast("index")
		return func(t *tail) {
			c := f.equal(f.load(w.of(which), t), index)
			f.store(f.ifElseZero(c, f.load(w.of(dy), t)), w.of(dx), t)
		}
	})
	f.addUp()
	f.exponentials()
	f.finite()
}

// addUp adds rows to sums, sixteen columns at a time.
func (f *Family) addUp() {
	f.along("AddUp", "sums, x *float32, stride, rows, n int", func(w *walk) func(*tail) {
		sums, x := param64("sums"), param64("x")
		return func(t *tail) {
			next := "rows"
			if t != nil {
				next = "rowsOfTail"
			}
			row, stride, left := GP64(), param64("stride"), param64("rows")
			LEAQ(w.of(x), row)
			sum := f.load(w.of(sums), t)
			Label(next)
			v := f.load(Mem{Base: row}, t)
			for i := range sum {
				VADDPS(v[i], sum[i], sum[i])
			}
			ADDQ(stride, row)
			DECQ(left)
			JNZ(LabelRef(next))
			f.store(sum, w.of(sums), t)
		}
	})
}

// exponentials writes exp(x-less).
func (f *Family) exponentials() {
	f.along("Exp", "y, x *float32, n int, less float32", func(w *walk) func(*tail) {
		y, x, less := param64("y"), param64("x"), f.broadcast("less")
		return func(t *tail) { f.store(f.exp(f.sub(f.load(w.of(x), t), less)), w.of(y), t) }
	})
}

// finite returns whether the exponents of n numbers all have a 0.
func (f *Family) finite() {
	f.begin("Finite", "func(x *float32, n int) bool")
	x := param64("x")
	w := f.walkOf(param64("n"))
	bad := f.zero()
	w.each("numbers", func(t *tail) {
		v := f.and(f.word("Exponent", 0x7f800000), f.load(w.of(x), t))
		// Only a full exponent reaches the sign with one more.
		v = f.do(VPADDD, f.word("ExponentOne", 0x00800000), v)
		for i := range bad {
			VORPS(v[i], bad[i], bad[i])
		}
	})
	all := bad[0].AsY()
	if f.Wide {
		high := YMM()
		VEXTRACTF32X8(U8(1), bad[0], high)
		VORPS(high, all, all)
	} else {
		VORPS(bad[1], all, all)
	}
	signs, yes := GP32(), GP8()
	VMOVMSKPS(all, signs)
	TESTL(signs, signs)
	SETEQ(yes)
	Store(yes, ReturnIndex(0))
	end()
}
