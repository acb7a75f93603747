package rows

import "math"

// exp(x) is 2^n * exp(r), with n the integer nearest to x/ln 2 and r the remainder, at
// most ln 2 / 2 in magnitude, for which 1 + r + r*r*q(r) is accurate to about the last
// bit. All implementations use these constants; assembly follows the order written here,
// with fused multiply-add.
const (
	log2e  = 1.44269504088896341
	ln2Hi  = 0.693359375 // few bits: n*ln2Hi is exact
	ln2Lo  = -2.12194440054690583e-4
	expMin = -104 // exp is 0 below
	expMax = 89   // and infinite above
	expQ0  = 1.0 / 2
	expQ1  = 1.0 / 6
	expQ2  = 1.0 / 24
	expQ3  = 1.0 / 120
	expQ4  = 1.0 / 720
	expQ5  = 1.0 / 5040
)

// reduced returns n and exp(r)-1.
func reduced(x float32) (n int, e float32) {
	k := float32(math.RoundToEven(float64(x * log2e)))
	r := x - k*ln2Hi
	r -= k * ln2Lo
	q := float32(expQ5)
	q = q*r + expQ4
	q = q*r + expQ3
	q = q*r + expQ2
	q = q*r + expQ1
	q = q*r + expQ0
	return int(k), q*r*r + r
}

// power returns 2^n, which must be a normal number.
func power(n int) float32 { return math.Float32frombits(uint32(n+127) << 23) }

func expOf(x float32) float32 {
	if x != x {
		return x
	}
	n, e := reduced(min(max(x, expMin), expMax))
	// In two steps, as 2^n itself may not be a normal number.
	return (e + 1) * power(n>>1) * power(n-n>>1)
}

// eluOf returns exp(x)-1 for negative x, also accurate near 0.
func eluOf(x float32) float32 {
	if !(x < 0) {
		return x
	}
	n, e := reduced(max(x, -87))
	p := power(n)
	return e*p + (p - 1)
}

// Exp computes exp of each element, with a relative error of 2e-7. dst may be src and
// must have its length.
func Exp(dst, src []float32) { expRow(dst, src, 0) }
