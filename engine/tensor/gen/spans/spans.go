// Package spans writes the kernels that sum rows of sources, for vectors of any
// kind.
//
// A kernel holds a row of the output in registers, up to Most vectors, while it goes
// over the row's entries in their order; the last vector of a row is masked. Source
// rows are fetched ahead into the second cache, whose queue of misses is the deeper
// one.
package spans

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Vectors are those of one kind of CPU.
type Vectors struct {
	Suffix string // of the kernels' names
	Lanes  int
	Most   int // sums
	// Prepare makes the mask of as many lanes as tail says, 1 to Lanes, which it
	// may change, as it may R11.
	Prepare func(tail reg.GPPhysical, half bool)
	Sum     func(i int) reg.Register
	Weight  reg.Register
	Weights reg.Register
	Other   reg.Register

	Zero  func(v Op)
	Load  func(m Mem, v Op, last bool)
	Store func(v Op, m Mem, last bool)
	// Add adds m to sum; half says that m is BF16.
	Add func(m Mem, sum Op, half, last bool)
	// Weigh adds m times weight.
	Weigh func(m Mem, weight, sum Op, half, last bool)
}

// A Kind is one of the kernels.
type Kind struct {
	Name     string
	Half     bool // sources are BF16
	Weighted bool // one weight an entry
	Heads    bool // one weight a head: which one a column has, lanes says
}

// Kinds are all of them.
var Kinds = []Kind{
	{Name: "sum"}, {Name: "weigh", Weighted: true}, {Name: "heads", Heads: true},
	{Name: "sumHalf", Half: true}, {Name: "weighHalf", Half: true, Weighted: true},
}

// What lies where in all kernels. CX counts entries, DX is the source, R11 what is
// fetched.
var (
	y       = reg.RAX
	x       = reg.RBX
	count   = reg.RCX
	source  = reg.RDX
	index   = reg.RSI
	value   = reg.RDI
	stride  = reg.R8
	ahead   = reg.R9
	end     = reg.R10
	fetched = reg.R11
	indptr  = reg.R12
	rows    = reg.R13
	scale   = reg.R14
	lanes   = reg.R15 // of heads; else what Prepare leaves there
)

// Flags of a call.
const (
	Onward = 1 // sums start from what y holds
	Add    = 2 // what y held is added at the end
)

const signature = "func(y *float32, yStride int, x %s, xStride int, indptr *int64, indices *int32, values *float32, valueStride int, " +
	"scale *float32, scaleStride int, lanes *int32, rows int, cols int, ahead int, last *int32, wide int, flags int)"

// Sum writes one kernel. Strides are in bytes, and so is ahead, which is the distance
// in indices to the source that is fetched, but not beyond last; 0 fetches nothing.
// wide is how many bytes of a source are fetched where that is more than the kernel
// reads, else 0.
func Sum(v Vectors, k Kind) {
	element := "*float32"
	if k.Half {
		element = "*uint16"
	}
	TEXT(k.Name+v.Suffix, NOSPLIT, fmt.Sprintf(signature, element))
	Pragma("noescape")
	// The mask first: it needs registers that are something else later.
	Load(Param("cols"), count)
	MOVQ(count, source)
	ADDQ(I32(v.Lanes-1), source)
	SHRQ(U8(shift(v.Lanes)), source) // vectors
	MOVQ(source, rows)
	DECQ(rows)
	SHLQ(U8(shift(v.Lanes)), rows)
	SUBQ(rows, count)
	MOVQ(source, rows)
	v.Prepare(count, k.Half)
	MOVQ(rows, source)
	for _, p := range []struct {
		name string
		to   reg.GPPhysical
	}{{"y", y}, {"x", x}, {"xStride", stride}, {"indptr", indptr}, {"indices", index}, {"values", value}, {"scale", scale}, {"rows", rows}, {"ahead", ahead}, {"last", end}} {
		Load(Param(p.name), p.to)
	}
	if k.Heads {
		Load(Param("lanes"), lanes)
	}
	for n := 1; n <= v.Most; n++ {
		CMPQ(source, I32(n))
		JE(LabelRef(fmt.Sprintf("vectors%d", n)))
	}
	RET()
	for n := 1; n <= v.Most; n++ {
		body(v, k, n)
	}
}

func shift(lanes int) int {
	if lanes == 16 {
		return 4
	}
	return 3
}

func param(name string) Mem {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// body is the kernel for rows of n vectors.
func body(v Vectors, k Kind, n int) {
	label := func(name string) string { return fmt.Sprintf("%s%d", name, n) }
	at := func(base reg.Register, i, size int) Mem { return Mem{Base: base, Disp: i * v.Lanes * size} }
	size := 4
	if k.Half {
		size = 2
	}
	Label(label("vectors"))
	Label(label("row"))
	MOVQ(Mem{Base: indptr, Disp: 8}, count)
	SUBQ(Mem{Base: indptr}, count)
	ADDQ(Imm(8), indptr)
	BTQ(Imm(0), param("flags"))
	JC(LabelRef(label("onward")))
	for i := range n {
		v.Zero(v.Sum(i))
	}
	JMP(LabelRef(label("begin")))
	Label(label("onward"))
	for i := range n {
		v.Load(at(y, i, 4), v.Sum(i), i == n-1)
	}
	Label(label("begin"))
	TESTQ(count, count)
	JZ(LabelRef(label("end")))
	TESTQ(ahead, ahead)
	JZ(LabelRef(label("near")))
	CMPQ(param("wide"), Imm(0))
	JNE(LabelRef(label("wide")))

	entry := func(fetch func()) {
		if fetch != nil {
			LEAQ(Mem{Base: index, Index: ahead, Scale: 1}, fetched)
			CMPQ(fetched, end)
			CMOVQHI(end, fetched)
			MOVLQSX(Mem{Base: fetched}, fetched)
			IMULQ(stride, fetched)
			ADDQ(x, fetched)
			fetch()
		}
		MOVLQSX(Mem{Base: index}, source)
		ADDQ(Imm(4), index)
		IMULQ(stride, source)
		ADDQ(x, source)
		switch {
		case k.Weighted:
			VBROADCASTSS(Mem{Base: value}, v.Weight)
			ADDQ(param("valueStride"), value)
		case k.Heads:
			VMOVUPS(Mem{Base: value}, v.Weights)
			ADDQ(param("valueStride"), value)
		}
		for i := range n {
			if k.Heads {
				VMOVUPS(at(lanes, i, 4), v.Weight)
				VPERMPS(v.Weights, v.Weight, v.Weight)
			}
			m := at(source, i, size)
			if k.Weighted || k.Heads {
				v.Weigh(m, v.Weight, v.Sum(i), k.Half, i == n-1)
			} else {
				v.Add(m, v.Sum(i), k.Half, i == n-1)
			}
		}
		DECQ(count)
	}
	bytes := n * v.Lanes * size
	Label(label("far"))
	entry(func() {
		for at := 0; at < bytes; at += 64 {
			PREFETCHT1(Mem{Base: fetched, Disp: at})
		}
		if bytes > 64 {
			PREFETCHT1(Mem{Base: fetched, Disp: bytes - 1})
		}
	})
	JNZ(LabelRef(label("far")))
	JMP(LabelRef(label("end")))
	Label(label("wide"))
	entry(func() {
		MOVQ(fetched, source)
		ADDQ(param("wide"), source)
		Label(label("line"))
		PREFETCHT1(Mem{Base: fetched})
		ADDQ(Imm(64), fetched)
		CMPQ(fetched, source)
		JB(LabelRef(label("line")))
		PREFETCHT1(Mem{Base: source, Disp: -1})
	})
	JNZ(LabelRef(label("wide")))
	JMP(LabelRef(label("end")))
	Label(label("near"))
	entry(nil)
	JNZ(LabelRef(label("near")))

	Label(label("end"))
	TESTQ(scale, scale)
	JZ(LabelRef(label("scaled")))
	if k.Heads {
		VMOVUPS(Mem{Base: scale}, v.Weights)
	} else {
		VBROADCASTSS(Mem{Base: scale}, v.Weight)
	}
	ADDQ(param("scaleStride"), scale)
	for i := range n {
		if k.Heads {
			VMOVUPS(at(lanes, i, 4), v.Weight)
			VPERMPS(v.Weights, v.Weight, v.Weight)
		}
		VMULPS(v.Weight, v.Sum(i), v.Sum(i))
	}
	Label(label("scaled"))
	BTQ(Imm(1), param("flags"))
	JNC(LabelRef(label("store")))
	for i := range n {
		v.Load(at(y, i, 4), v.Other, i == n-1)
		VADDPS(v.Other, v.Sum(i), v.Sum(i))
	}
	Label(label("store"))
	for i := range n {
		v.Store(v.Sum(i), at(y, i, 4), i == n-1)
	}
	ADDQ(param("yStride"), y)
	DECQ(rows)
	JNZ(LabelRef(label("row")))
	VZEROUPPER()
	RET()
}
