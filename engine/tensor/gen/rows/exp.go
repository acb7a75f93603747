package rows

import (
	. "github.com/mmcloughlin/avo/build"
)

// reduced returns the whole number n nearest to x/ln 2, as integers, and
// exp(x - n ln 2) - 1. It is written down in numbers in package rows of cpu.
func (f *Family) reduced(x block) (n, e block) {
	n = f.one(VCVTPS2DQ, f.mul(f.number("Log2e", 1.44269504088896341), x))
	k := f.one(VCVTDQ2PS, n)
	r := f.copyOf(x)
	r = f.subProduct(r, f.number("Ln2Hi", 0.693359375), k)
	r = f.subProduct(r, f.number("Ln2Lo", -2.12194440054690583e-4), k)
	q := f.load(f.number("Exp5", 1.0/5040), nil)
	q = f.mulAdd(q, r, f.number("Exp4", 1.0/720))
	q = f.mulAdd(q, r, f.number("Exp3", 1.0/120))
	q = f.mulAdd(q, r, f.number("Exp2", 1.0/24))
	q = f.mulAdd(q, r, f.number("Exp1", 1.0/6))
	q = f.mulAdd(q, r, f.number("Exp0", 1.0/2))
	return n, f.mulAdd(f.mul(q, r), r, r)
}

// power is 2^n.
func (f *Family) power(n block) block {
	return f.shift(VPSLLD, 23, f.do(VPADDD, f.word("Bias", 127), n))
}

// exp is that of any number.
func (f *Family) exp(x block) block {
	x = f.larger(x, f.load(f.number("ExpMin", -104), nil))
	x = f.smaller(x, f.load(f.number("ExpMax", 89), nil))
	n, e := f.reduced(x)
	half := f.shift(VPSRAD, 1, n)
	e = f.mul(f.add(f.number("One", 1), e), f.power(half))
	return f.mul(e, f.power(f.do(VPSUBD, half, n)))
}

// elu is exp(x)-1 below 0.
func (f *Family) elu(x block) block {
	n, e := f.reduced(f.larger(x, f.load(f.number("ELUMin", -87), nil)))
	p := f.power(n)
	less := f.add(f.number("MinusOne", -1), p)
	return f.ifElse(f.negative(x), f.mulAdd(e, p, less), f.copyOf(x))
}
