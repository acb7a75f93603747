//go:build cuda && emulator

package kernels_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/cuda/kernels"
	"github.com/hopmesh/hopmesh/cuda/ptx"
	"github.com/hopmesh/hopmesh/engine/keyed"
)

// Each primitive by itself against what it means. The emulator has twins of them in
// C++, so it is on a GPU that this shows a wrong letter of inline PTX.

// A checker runs the kernels of primitives.cu.
type checker struct {
	testing.TB
	on      *driver.Thread
	module  *driver.Module
	kernels map[string][]int
	err     error
}

// checking runs f on the first GPU, or the emulated one.
func checking(t *testing.T, f func(c *checker)) {
	t.Helper()
	d, err := driver.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Do(func(on *driver.Thread) (err error) {
		c := &checker{TB: t, on: on}
		for _, m := range kernels.Modules() {
			if m.Name != "primitives" {
				continue
			}
			if c.kernels, err = ptx.Kernels(m.PTX); err != nil {
				return err
			}
			if c.module, err = on.Load(m.PTX); err != nil {
				return err
			}
		}
		f(c)
		return errors.Join(c.err, on.Unload(c.module))
	})
	if err := errors.Join(err, d.Close()); err != nil {
		t.Error(err)
	}
}

type number interface {
	uint16 | int32 | uint32 | uint64 | float32
}

// sent is memory of the GPU with these numbers.
func sent[T number](c *checker, numbers []T) driver.Memory {
	n := len(numbers) * int(unsafe.Sizeof(T(0)))
	m, err := c.on.Alloc(n)
	p, err2 := c.on.AllocPinned(n)
	if c.err = errors.Join(c.err, err, err2); c.err != nil {
		return m
	}
	copy(driver.Numbers[T](p), numbers)
	c.err = errors.Join(c.on.SendNow(m, p), c.on.FreePinned(p))
	return m
}

// fetched is what is in the memory, which is given back.
func fetched[T number](c *checker, m driver.Memory) []T {
	numbers := make([]T, m.Len()/int(unsafe.Sizeof(T(0))))
	if c.err != nil {
		return numbers
	}
	p, err := c.on.AllocPinned(m.Len())
	if c.err = err; err != nil {
		return numbers
	}
	c.err = errors.Join(c.on.Synchronize(), c.on.FetchNow(p, m), c.on.Free(m))
	copy(numbers, driver.Numbers[T](p))
	c.err = errors.Join(c.err, c.on.FreePinned(p))
	return numbers
}

func (c *checker) run(kernel string, blocks, threads int, arguments ...driver.Argument) {
	if c.err != nil {
		return
	}
	k, err := c.on.Kernel(c.module, kernel, c.kernels[kernel]...)
	if err != nil {
		c.err = err
		return
	}
	c.err = c.on.Launch(k, driver.Shape{Grid: [3]int{blocks, 1, 1}, Block: [3]int{threads, 1, 1}}, arguments...)
}

// same compares numbers that have one right answer.
func same[T number](c *checker, what string, i int, got, want T) {
	c.Helper()
	if got != want {
		c.Errorf("%s: number %d is %v, want %v", what, i, got, want)
	}
}

func TestCheckWarp(t *testing.T) {
	checking(t, func(c *checker) {
		out := sent(c, make([]uint32, 192))
		c.run("check_warp", 1, 32, out.Argument())
		got := fetched[uint32](c, out)
		for l := range 32 {
			same(c, "shuffle", l, got[l], uint32(l+1)%32*7)
			same(c, "shuffleXor", l, got[32+l], uint32(l^5)*7)
			same(c, "votes", l, got[64+l], 0xaaaaaaaa)
			same(c, "sumOfWarp", l, math.Float32frombits(got[96+l]), 496)
			same(c, "maxOfWarp", l, math.Float32frombits(got[128+l]), 31)
			same(c, "sumOfWarp of doubles", l, got[160+l], 496_000_008)
		}
	})
}

func TestCheckBlock(t *testing.T) {
	checking(t, func(c *checker) {
		out, counts := sent(c, make([]uint32, 768)), sent(c, []int32{0, 5, 0})
		sum, claimed := sent(c, []float32{0}), sent(c, []uint32{0})
		c.run("check_block", 3, 256, out.Argument(), counts.Argument(), sum.Argument(), claimed.Argument())
		for i, got := range fetched[uint32](c, out) {
			same(c, "through shared memory", i, got, uint32(i/256*1000+255-i%256))
		}
		got := fetched[int32](c, counts)
		same(c, "addAtomic", 0, got[0], 768)
		same(c, "minAtomic", 0, got[1], -255)
		same(c, "swapAtomic, who was first", 0, got[2], 1)
		same(c, "addAtomic of floats", 0, fetched[float32](c, sum)[0], 384)
		same(c, "swapAtomic", 0, fetched[uint32](c, claimed)[0], 1)
	})
}

func TestCheckCopy(t *testing.T) {
	checking(t, func(c *checker) {
		const there = 101
		from := make([]float32, 160)
		for i := range from {
			from[i] = float32(i + 1)
		}
		out, in := sent(c, make([]float32, 160)), sent(c, from)
		c.run("check_copy", 1, 32, out.Argument(), in.Argument(), driver.Int32(there))
		for i, got := range fetched[float32](c, out) {
			want := from[i]
			if i >= there && i < 128 || i == 159 {
				want = 0
			}
			same(c, "a copy", i, got, want)
		}
		fetched[float32](c, in)
	})
}

func TestCheckMemory(t *testing.T) {
	checking(t, func(c *checker) {
		from, half := make([]float32, 256), make([]uint16, 256)
		for i := range from {
			from[i], half[i] = float32(i)+0.5, uint16(i*257)
		}
		to, in := sent(c, make([]float32, 256)), sent(c, from)
		toHalf, inHalf := sent(c, make([]uint16, 256)), sent(c, half)
		c.run("check_memory", 1, 32, to.Argument(), in.Argument(), toHalf.Argument(), inHalf.Argument())
		for i, got := range fetched[float32](c, to) {
			same(c, "load4, loadMutable4, store4 and store2", i, got, from[i])
		}
		for i, got := range fetched[uint16](c, toHalf) {
			same(c, "load4, loadMutable4 and store4 of halves", i, got, half[i])
		}
		fetched[float32](c, in)
		fetched[uint16](c, inHalf)
	})
}

// whole are whole numbers that tf32 and bf16 hold, so that products and their sums have
// one right answer: fragments in wrong places show.
func whole(r *rand.Rand, n int) (floats []float32, halves []uint16) {
	for range n {
		v := float32(r.IntN(255) - 127)
		floats, halves = append(floats, v), append(halves, uint16(math.Float32bits(v)>>16))
	}
	return floats, halves
}

func TestCheckProducts(t *testing.T) {
	checking(t, func(c *checker) {
		r := rand.New(rand.NewPCG(1, 2))
		a, _ := whole(r, 16*8)
		b, _ := whole(r, 8*8)
		a16, halvesA := whole(r, 16*16)
		b16, halvesB := whole(r, 16*8)
		out := sent(c, make([]float32, 256))
		in := [2]driver.Memory{sent(c, a), sent(c, b)}
		in16 := [2]driver.Memory{sent(c, halvesA), sent(c, halvesB)}
		c.run("check_mma", 1, 32, out.Argument(), in[0].Argument(), in[1].Argument(), in16[0].Argument(), in16[1].Argument())
		got := fetched[float32](c, out)
		for row := range 16 {
			for col := range 8 {
				var one, two float32
				for k := range 8 {
					one += a[row*8+k] * b[k*8+col]
				}
				for k := range 16 {
					two += a16[row*16+k] * b16[k*8+col]
				}
				same(c, "mmaTF32", row*8+col, got[row*8+col], one)
				same(c, "mmaBF16", row*8+col, got[128+row*8+col], two)
			}
		}
		for i := range in {
			fetched[float32](c, in[i])
			fetched[uint16](c, in16[i])
		}
	})
}

func TestCheckKeyed(t *testing.T) {
	checking(t, func(c *checker) {
		var keys, numbers []uint64
		r := rand.New(rand.NewPCG(3, 4))
		for range 300 {
			keys, numbers = append(keys, r.Uint64()), append(numbers, r.Uint64()>>r.IntN(64)|1)
		}
		out, in, below := sent(c, make([]uint64, 4*len(keys))), sent(c, keys), sent(c, numbers)
		c.run("check_keyed", 2, 256, out.Argument(), in.Argument(), below.Argument(), driver.Int32(int32(len(keys))))
		got := fetched[uint64](c, out)
		for i, k := range keys {
			key := keyed.Key(k)
			draws := key.Draws()
			same(c, "a key's child", i, got[4*i], uint64(key.With(numbers[i])))
			same(c, "a draw", i, got[4*i+1], draws.Next())
			same(c, "a draw below", i, got[4*i+2], draws.Below(numbers[i]))
			same(c, "a column's bits", i, got[4*i+3], uint64(key.Column(uint32(numbers[i]))))
		}
		fetched[uint64](c, in)
		fetched[uint64](c, below)
	})
}

// What is approximate is so within its bound, what is rounded is so to the last bit.
func TestCheckNumbers(t *testing.T) {
	checking(t, func(c *checker) {
		var x []float32
		for i := range 600 {
			v := float32(i-250) / 3
			if i >= 500 {
				v = float32(math.Pow(10, float64(i-550)/10))
			}
			if v > 80 {
				v = float32(i) / 10
			}
			if v == 0 {
				v = 1e-20
			}
			x = append(x, v)
		}
		// Halves between two tf32, and two bf16: away from 0 the first, to even the second.
		for _, b := range []uint32{0x3f801000, 0x3f803000, 0xbf801000, 0x3f808000, 0x3f818000, 0xbf818000} {
			x = append(x, math.Float32frombits(b))
		}
		n := len(x)
		out, in := sent(c, make([]float32, 8*n)), sent(c, x)
		c.run("check_numbers", 3, 256, out.Argument(), in.Argument(), driver.Int32(int32(n)))
		got := fetched[float32](c, out)
		fetched[float32](c, in)
		for i, f := range x {
			v, p := float64(f), math.Abs(float64(f))
			near := func(what string, function int, want, share float64) {
				if g := float64(got[function*n+i]); !(math.Abs(g-want) <= share*math.Abs(want)+1e-37) {
					t.Errorf("%s of %g is %g, want %g", what, f, g, want)
				}
			}
			near("exponential", 0, math.Exp(v), 1e-6)
			if math.Abs(math.Log(p)) > 0.1 {
				near("logarithm", 1, math.Log(p), 1e-6)
			}
			near("exponentialLess1", 2, math.Expm1(-p), 1e-6)
			near("rsqrtApprox", 4, 1/math.Sqrt(p), 1e-6)
			same(c, "root", i, got[3*n+i], float32(math.Sqrt(p)))
			same(c, "tf32", i, got[5*n+i], math.Float32frombits((math.Float32bits(f)+0x1000)&^0x1fff))
			same(c, "narrow", i, got[6*n+i], math.Float32frombits(evenHalf(math.Float32bits(f))))
			same(c, "fused", i, got[7*n+i], float32(math.FMA(v, v, -1)))
		}
	})
}

// evenHalf rounds to the upper half of the bits, to even.
func evenHalf(b uint32) uint32 {
	return (b + 0x7fff + b>>16&1) &^ 0xffff
}

// Two floats in a word, rounded to bf16: ties, what rounds up to infinity, and what is
// below the normal numbers.
func TestCheckHalves(t *testing.T) {
	checking(t, func(c *checker) {
		x := []float32{1, 1.00390625, 1.01171875, -3.4e38, 3.39e38, 1e-40, float32(math.Copysign(0, -1)), float32(math.Inf(1))}
		for i := len(x); i < 600; i++ {
			x = append(x, float32(i-300)/7)
		}
		n := len(x) / 2
		in, out := sent(c, x), sent(c, make([]uint32, n))
		c.run("check_halves", 2, 256, out.Argument(), in.Argument(), driver.Int32(int32(n)))
		for i, got := range fetched[uint32](c, out) {
			same(c, "halves", i, got, evenHalf(math.Float32bits(x[2*i]))>>16|evenHalf(math.Float32bits(x[2*i+1])))
		}
		fetched[float32](c, in)
	})
}
