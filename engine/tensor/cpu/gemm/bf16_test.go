package gemm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/workers"
)

// rounded is v as BF16, the nearest or the even one.
func rounded(v float32) float32 {
	b := math.Float32bits(v)
	return math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
}

// TestBF16 holds that SetBF16 gives the products of rounded numbers where the CPU
// can, whatever the size, and the same for any number of threads; and that it
// changes nothing elsewhere.
func TestBF16(t *testing.T) {
	round := func(v float32) float32 { return v }
	if family.BF16() {
		round = rounded
	}
	one, three := current(t, 1), current(t, 3)
	one.SetBF16(true)
	three.SetBF16(true)
	sizes := append([][3]int{{1, 1, 1}, {31, 385, 40}, {16, 384, 16}, {70, 1019, 90}}, bits[:4]...)
	r := rand.New(rand.NewPCG(19, 20))
	for range 100 {
		sizes = append(sizes, [3]int{1 + r.IntN(40), 1 + r.IntN(40), 1 + r.IntN(70)})
	}
	for shape, name := range shapes {
		r := rand.New(rand.NewPCG(20, 19))
		for _, s := range sizes {
			c, a, b := operands(r, shape, s[0], s[1], s[2])
			before, again := copyOf(c), copyOf(c)
			exactA, exactB := copyOf(a), copyOf(b)
			for i, v := range exactA.data {
				exactA.data[i] = round(v)
			}
			for i, v := range exactB.data {
				exactB.data[i] = round(v)
			}
			one.MatMul(c.Matrix, a.Matrix, b.Matrix, shape, true, nil)
			three.MatMul(again.Matrix, a.Matrix, b.Matrix, shape, true, nil)
			c.intact(t, name)
			sameBits(t, name+" on three", again.Matrix, c.Matrix)
			for i := range s[0] {
				for j := range s[2] {
					was := float64(*at(before.Matrix, i, j))
					want, size := product64(exactA.Matrix, exactB.Matrix, shape, i, j, s[1])
					want, size = want+was, size+math.Abs(was)
					if got := float64(*at(c.Matrix, i, j)); !(math.Abs(got-want) <= size*float64(s[1]+1)*0x1p-24) {
						t.Fatalf("%s %v: element %d, %d is %g and not %g", name, s, i, j, got, want)
					}
				}
			}
		}
	}
}

// current is a Gemm of the family that this process computes with.
func current(t *testing.T, threads int) *Gemm {
	pool := workers.New(threads)
	t.Cleanup(pool.Close)
	return New(pool)
}
