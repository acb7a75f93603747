package rows

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rowsToCome is how many bytes ahead rows are fetched.
const rowsToCome = 4 << 10

// spread is a block of one number of a register.
func (f *Family) spread(x reg.VecVirtual) block { return f.same(x) }

// accumulate is z += x within a tail.
func (f *Family) accumulate(z, x block, t *tail) {
	x = f.within(x, t)
	for i := range z {
		VADDPS(x[i], z[i], z[i])
	}
}

func (f *Family) normKernels() {
	f.norm()
	f.normBack()
}

// norm is a row of LayerNorm, and its mean and 1/deviation.
func (f *Family) norm() {
	f.begin("Norm", "func(y, x, gamma, beta, stats *float32, n int, epsilon float32)")
	y, x, n := param64("y"), param64("x"), param64("n")
	w := f.walkOf(n)
	count := XMM()
	VCVTSI2SSQ(n, f.zero()[0].AsX(), count)
	sums := f.zero()
	w.each("sum", func(t *tail) { f.accumulate(sums, f.load(w.of(x), t), t) })
	average := f.total(sums)
	VDIVSS(count, average, average)
	mean := f.spread(average)
	squares := f.zero()
	w.each("squares", func(t *tail) {
		d := f.within(f.sub(f.load(w.of(x), t), mean), t)
		f.addProduct(squares, d, d)
	})
	inverse, epsilon, one := f.total(squares), XMM(), XMM()
	VDIVSS(count, inverse, inverse)
	Load(Param("epsilon"), epsilon)
	VADDSS(epsilon, inverse, inverse)
	VSQRTSS(inverse, inverse, inverse)
	VMOVSS(f.number("One", 1), one)
	VDIVSS(inverse, one, inverse)
	stats := param64("stats")
	VMOVSS(average, Mem{Base: stats})
	VMOVSS(inverse, Mem{Base: stats, Disp: 4})
	by := f.spread(inverse)
	gamma, beta := param64("gamma"), param64("beta")
	w.each("norm", func(t *tail) {
		// The sums of the next rows would wait for memory, and all else for them.
		PREFETCHT0(w.of(x).Offset(rowsToCome))
		h := f.mul(by, f.sub(f.load(w.of(x), t), mean))
		f.store(f.mulAdd(h, f.load(w.of(gamma), t), f.load(w.of(beta), t)), w.of(y), t)
	})
	end()
}

// normBack is a row of its gradient.
func (f *Family) normBack() {
	f.begin("NormBack", "func(dx, dgamma, dbeta, dy, x, gamma *float32, n int, mean, inverse float32)")
	dx, dgamma, dbeta, dy := param64("dx"), param64("dgamma"), param64("dbeta"), param64("dy")
	x, gamma, n := param64("x"), param64("gamma"), param64("n")
	w := f.walkOf(n)
	count := XMM()
	VCVTSI2SSQ(n, f.zero()[0].AsX(), count)
	mean, inverse := f.broadcast("mean"), f.broadcast("inverse")
	normal := func(t *tail) block { return f.mul(inverse, f.sub(f.load(w.of(x), t), mean)) }
	sums, products := f.zero(), f.zero()
	w.each("sums", func(t *tail) {
		h, g := normal(t), f.load(w.of(dy), t)
		f.store(f.addProduct(f.load(w.of(dgamma), t), h, g), w.of(dgamma), t)
		f.store(f.add(f.load(w.of(dbeta), t), g), w.of(dbeta), t)
		g = f.mul(g, f.load(w.of(gamma), t))
		f.accumulate(sums, g, t)
		f.accumulate(products, f.mul(g, h), t)
	})
	s, p := f.total(sums), f.total(products)
	VDIVSS(count, s, s)
	VDIVSS(count, p, p)
	sum, product := f.spread(s), f.spread(p)
	w.each("back", func(t *tail) {
		h := normal(t)
		g := f.sub(f.mul(f.load(w.of(dy), t), f.load(w.of(gamma), t)), sum)
		f.store(f.mul(inverse, f.subProduct(g, h, product)), w.of(dx), t)
	})
	end()
}
