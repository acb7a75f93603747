package rows

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

func (f *Family) updateKernels() {
	f.adam()
	f.sgd(false)
	f.sgd(true)
}

// adam takes the numbers of a rule in the order of AdamRule in package rows of cpu.
func (f *Family) adam() {
	f.begin("Adam", "func(w, gradient, m, v, rule *float32, n int)")
	weights, g, m, v, rule := param64("w"), param64("gradient"), param64("m"), param64("v"), param64("rule")
	w := f.walkOf(param64("n"))
	number := func(i int) block { return f.same(Mem{Base: rule, Disp: 4 * i}) }
	beta1, rest1, beta2, rest2 := number(0), number(1), number(2), number(3)
	w.each("adam", func(t *tail) {
		x, d := f.load(w.of(weights), t), f.load(w.of(g), t)
		d = f.addProduct(d, x, number(7))
		first := f.addProduct(f.mul(beta1, f.load(w.of(m), t)), d, rest1)
		f.store(first, w.of(m), t)
		second := f.addProduct(f.mul(beta2, f.load(w.of(v), t)), f.mul(d, d), rest2)
		f.store(second, w.of(v), t)
		root := f.mulAdd(f.one(VSQRTPS, second), number(5), number(6))
		change := f.div(f.mul(first, number(4)), root)
		f.store(f.sub(f.mul(x, number(8)), change), w.of(weights), t)
	})
	end()
}

func (f *Family) sgd(withMomentum bool) {
	f.begin("SGD"+word(withMomentum, "Momentum"), "func(w, gradient, m *float32, n int, rate, momentum, decay float32)")
	weights, g := param64("w"), param64("gradient")
	m := weights
	if withMomentum {
		m = param64("m")
	}
	w := f.walkOf(param64("n"))
	rate, decay := f.broadcast("rate"), f.broadcast("decay")
	momentum := rate
	if withMomentum {
		momentum = f.broadcast("momentum")
	}
	w.each("sgd", func(t *tail) {
		x, d := f.load(w.of(weights), t), f.load(w.of(g), t)
		d = f.addProduct(d, x, decay)
		if withMomentum {
			d = f.addProduct(d, f.load(w.of(m), t), momentum)
			f.store(d, w.of(m), t)
		}
		f.store(f.subProduct(x, d, rate), w.of(weights), t)
	})
	end()
}
