// Package rows writes the kernels of rows of numbers, for vectors of eight lanes
// and of sixteen. A kernel works on blocks of sixteen numbers in both, so that sums
// have sixteen lanes and the same bits.
package rows

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Family is what kernels are written for.
type Family struct {
	Prefix string
	Wide   bool // AVX-512: one vector a block, masks in registers of their own

	table     Mem // sixteen lanes that count, then sixteen that don't
	constants map[string]Mem
}

// A block is sixteen numbers.
type block []reg.VecVirtual

// A tail is the masks of a block that is not full.
type tail struct {
	k reg.OpmaskVirtual
	m block
}

// Kernels writes them all.
func (f *Family) Kernels() {
	f.constants = map[string]Mem{}
	if !f.Wide {
		f.table = GLOBL(f.Prefix+"Lanes", RODATA|NOPTR)
		for i := range 32 {
			var v U32
			if i < 16 {
				v = 0xffffffff
			}
			DATA(4*i, v)
		}
	}
	f.finishKernels()
	f.backKernels()
	f.elementKernels()
	f.copyKernels()
	f.normKernels()
	f.lossKernels()
	f.updateKernels()
	Generate()
}

// parts is how many vectors a block has.
func (f *Family) parts() int {
	if f.Wide {
		return 1
	}
	return 2
}

// step is the bytes of a vector of f32.
func (f *Family) step() int { return 64 / f.parts() }

func (f *Family) vector() reg.VecVirtual {
	if f.Wide {
		return ZMM()
	}
	return YMM()
}

func (f *Family) block() block {
	b := make(block, f.parts())
	for i := range b {
		b[i] = f.vector()
	}
	return b
}

// words is a block of constants, each lane given by a function.
func (f *Family) words(name string, lane func(i int) uint32) Mem {
	if m, ok := f.constants[name]; ok {
		return m
	}
	m := GLOBL(f.Prefix+name, RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(lane(i)))
	}
	f.constants[name] = m
	return m
}

// number is a block of one number.
func (f *Family) number(name string, x float32) Mem {
	return f.words(name, func(int) uint32 { return math.Float32bits(x) })
}

// word is a block of one integer.
func (f *Family) word(name string, x uint32) Mem {
	return f.words(name, func(int) uint32 { return x })
}

// same is a block with x in each lane.
func (f *Family) same(x Op) block {
	v := f.vector()
	VBROADCASTSS(x, v)
	b := make(block, f.parts())
	for i := range b {
		b[i] = v // shared: nobody writes it
	}
	return b
}

// an argument is a block, or a Mem: of numbers at an address or of a constant.
func (f *Family) part(x any, i int) Op {
	switch x := x.(type) {
	case block:
		return x[i]
	case Mem:
		return x.Offset(i * f.step())
	}
	panic("neither block nor memory")
}

// do is z = op(x, y) for an instruction whose operands are in Go's order: the first
// may be memory.
func (f *Family) do(op func(...Op), x, y any) block {
	z := f.block()
	for i := range z {
		op(f.part(x, i), f.part(y, i), z[i])
	}
	return z
}

func (f *Family) add(x, y any) block { return f.do(VADDPS, x, y) }
func (f *Family) mul(x, y any) block { return f.do(VMULPS, x, y) }
func (f *Family) div(x, y any) block { return f.do(VDIVPS, y, x) } // x/y
func (f *Family) sub(x, y any) block { return f.do(VSUBPS, y, x) } // x-y

// larger is the larger one, and x where one is no number.
func (f *Family) larger(x, y any) block  { return f.do(VMAXPS, x, y) }
func (f *Family) smaller(x, y any) block { return f.do(VMINPS, x, y) }

// mulAdd is x*y + z, which overwrites x's registers. y is a block.
func (f *Family) mulAdd(x block, y block, z any) block {
	for i := range x {
		VFMADD213PS(f.part(z, i), y[i], x[i])
	}
	return x
}

// addProduct is z += x*y; x may be memory.
func (f *Family) addProduct(z block, x any, y block) block {
	for i := range z {
		VFMADD231PS(f.part(x, i), y[i], z[i])
	}
	return z
}

// subProduct is z -= x*y; x may be memory.
func (f *Family) subProduct(z block, x any, y block) block {
	for i := range z {
		VFNMADD231PS(f.part(x, i), y[i], z[i])
	}
	return z
}

func (f *Family) copyOf(x block) block {
	z := f.block()
	for i := range z {
		VMOVAPS(x[i], z[i])
	}
	return z
}

func (f *Family) zero() block {
	z := f.block()
	for i := range z {
		if f.Wide {
			VPXORD(z[i], z[i], z[i])
		} else {
			VXORPS(z[i], z[i], z[i])
		}
	}
	return z
}

// and, or and xor are of bits.
func (f *Family) and(x, y any) block {
	if f.Wide {
		return f.do(VPANDD, x, y)
	}
	return f.do(func(o ...Op) { VPAND(o[0], o[1], o[2]) }, x, y)
}

func (f *Family) or(x, y any) block {
	if f.Wide {
		return f.do(VPORD, x, y)
	}
	return f.do(func(o ...Op) { VPOR(o[0], o[1], o[2]) }, x, y)
}

func (f *Family) xor(x, y any) block {
	if f.Wide {
		return f.do(VPXORD, x, y)
	}
	return f.do(func(o ...Op) { VPXOR(o[0], o[1], o[2]) }, x, y)
}

// shift is an instruction that shifts by a constant.
func (f *Family) shift(op func(...Op), by uint8, x block) block {
	z := f.block()
	for i := range z {
		op(U8(by), x[i], z[i])
	}
	return z
}

// one is an instruction of one operand.
func (f *Family) one(op func(...Op), x any) block {
	z := f.block()
	for i := range z {
		op(f.part(x, i), z[i])
	}
	return z
}

// A choice is, for each lane, yes or no.
type choice struct {
	k reg.OpmaskVirtual
	m block
}

// above is x > y, of numbers.
func (f *Family) above(x block, y any) choice {
	const greater = 30 // and ordered, and quiet
	if f.Wide {
		k := K()
		VCMPPS(U8(greater), f.part(y, 0), x[0], k)
		return choice{k: k}
	}
	m := f.block()
	for i := range m {
		VCMPPS(U8(greater), f.part(y, i), x[i], m[i])
	}
	return choice{m: m}
}

// equal is x == y, of integers.
func (f *Family) equal(x block, y any) choice {
	if f.Wide {
		k := K()
		VPCMPEQD(f.part(y, 0), x[0], k)
		return choice{k: k}
	}
	m := f.block()
	for i := range m {
		VPCMPEQD(f.part(y, i), x[i], m[i])
	}
	return choice{m: m}
}

// notBelow is x >= y, of unsigned integers.
func (f *Family) notBelow(x, y block) choice {
	if f.Wide {
		k := K()
		VPCMPUD(U8(5), y[0], x[0], k)
		return choice{k: k}
	}
	m := f.do(VPMAXUD, y, x)
	return f.equal(m, x)
}

// negative is the sign of x.
func (f *Family) negative(x block) choice {
	if f.Wide {
		k := K()
		VPMOVD2M(x[0], k)
		return choice{k: k}
	}
	return choice{m: x}
}

// ifElse is yes where chosen, else no, which it overwrites.
func (f *Family) ifElse(c choice, yes, no block) block {
	for i := range no {
		if f.Wide {
			VMOVAPS(yes[i], c.k, no[i])
		} else {
			VBLENDVPS(c.m[i], yes[i], no[i], no[i])
		}
	}
	return no
}

// ifElseZero is x where chosen, else 0.
func (f *Family) ifElseZero(c choice, x any) block {
	if f.Wide {
		z := f.block()
		VMOVUPS_Z(f.part(x, 0), c.k, z[0])
		return z
	}
	return f.and(x, c.m)
}

// tailOf makes the masks of n lanes, 0 < n < 16.
func (f *Family) tailOf(n reg.Register) tail {
	if f.Wide {
		ones, k := GP32(), K()
		MOVL(U32(0xffff), ones)
		BZHIL(n.(reg.GPVirtual).As32(), ones, ones)
		KMOVW(ones, k)
		return tail{k: k}
	}
	at, left := GP64(), GP64()
	LEAQ(f.table, at)
	MOVQ(n, left)
	NEGQ(left)
	m := f.block()
	for i := range m {
		VMOVUPS(Mem{Base: at, Index: left, Scale: 4, Disp: 64 + i*32}, m[i])
	}
	return tail{m: m}
}

// load reads a block, and 0 beyond a tail (nil: a full block).
func (f *Family) load(m Mem, t *tail) block {
	z := f.block()
	for i := range z {
		from := m.Offset(i * f.step())
		switch {
		case t == nil:
			VMOVUPS(from, z[i])
		case f.Wide:
			VMOVUPS_Z(from, t.k, z[i])
		default:
			VMASKMOVPS(from, t.m[i], z[i])
		}
	}
	return z
}

func (f *Family) store(x block, m Mem, t *tail) {
	for i := range x {
		to := m.Offset(i * f.step())
		switch {
		case t == nil:
			VMOVUPS(x[i], to)
		case f.Wide:
			VMOVUPS(x[i], t.k, to)
		default:
			VMASKMOVPS(x[i], t.m[i], to)
		}
	}
}

// within is x inside of a tail and 0 beyond.
func (f *Family) within(x block, t *tail) block {
	if t == nil {
		return x
	}
	return f.ifElseZero(choice(*t), x)
}

// total adds the lanes of x as a tree: lane i and i+8, then i+4, i+2, i+1.
func (f *Family) total(x block) reg.VecVirtual { return f.reduced16(x, VADDPS) }

// reduced16 makes one number of sixteen lanes.
func (f *Family) reduced16(x block, op func(...Op)) reg.VecVirtual {
	half := YMM()
	if f.Wide {
		high := YMM()
		VEXTRACTF32X8(U8(1), x[0], high)
		op(high, x[0].AsY(), half)
	} else {
		op(x[1], x[0], half)
	}
	sum, other := XMM(), XMM()
	VEXTRACTF128(U8(1), half, other)
	op(other, half.AsX(), sum)
	VPERMILPS(U8(0b1110), sum, other)
	op(other, sum, sum)
	VPERMILPS(U8(1), sum, other)
	op(other, sum, sum)
	return sum
}
