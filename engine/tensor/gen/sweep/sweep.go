// Package sweep writes the kernels of dense products: one kernel multiplies a
// block of rows with panels of columns, the sums staying in registers.
package sweep

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Signature is that of all kernels; the package that calls them says what the
// arguments mean.
const Signature = "func(a *float32, lda int, b *float32, ldb, nextB int, c *float32, ldc, k, blocks, panels, last int, add bool)"

// Lanes are the vectors of a family: how they are masked, and its instructions
// where they differ.
type Lanes struct {
	Prefix  string
	Count   int // numbers in a vector
	Vectors []reg.Register
	// Prepare makes the mask of the last panel from how many lanes of its last
	// vector are wanted. Panel puts the mask of a panel in force.
	Prepare func(wanted reg.GPPhysical)
	Panel   func(last bool)
	Zero    func(v Op)
	// MaskedLoad and MaskedStore touch no memory of lanes that are not wanted.
	MaskedLoad  func(m Mem, v Op)
	MaskedStore func(v Op, m Mem)
	// Multiply adds the products of two vectors to sums.
	Multiply func(x, y, sums reg.Register)
}

// The registers.
var (
	scratch = reg.RAX
	b       = reg.RBX
	left    = reg.RCX // steps of k
	ldb     = reg.RDX
	a1      = reg.RSI // lda
	c       = reg.RDI
	a       = reg.R8
	a9      = reg.R9 // a + 9 rows
	a3      = reg.R10
	a5      = reg.R11
	a7      = reg.R12
	ldc     = reg.R13
	ahead   = reg.R15
)

// rowOf is where element k of a row of a stands, a and a9 pointing at k of rows 0
// and 9.
var rowOf = [...]Mem{
	{Base: a},
	{Base: a, Index: a1, Scale: 1},
	{Base: a, Index: a1, Scale: 2},
	{Base: a, Index: a3, Scale: 1},
	{Base: a, Index: a1, Scale: 4},
	{Base: a, Index: a5, Scale: 1},
	{Base: a, Index: a3, Scale: 2},
	{Base: a, Index: a7, Scale: 1},
	{Base: a, Index: a1, Scale: 8},
	{Base: a9},
	{Base: a, Index: a5, Scale: 2},
	{Base: a9, Index: a1, Scale: 2},
	{Base: a, Index: a3, Scale: 4},
	{Base: a9, Index: a1, Scale: 4},
}

// Kernels writes those of one size, for a by rows and for a by columns.
func Kernels(l Lanes, rows, columns int) {
	kernel(l, rows, columns, false)
	kernel(l, rows, columns, true)
}

func kernel(l Lanes, rows, columns int, byColumns bool) {
	wide := columns / l.Count // vectors a row
	sums := l.Vectors[:rows*wide]
	spare := l.Vectors[rows*wide:]
	panel, spread := spare[:wide], spare[wide:]
	if len(spread) > 2 {
		spread = spread[:2]
	}

	way := "Rows"
	if byColumns {
		way = "Columns"
	}
	TEXT(fmt.Sprintf("%s%s%dx%d", l.Prefix, way, rows, columns), NOSPLIT, Signature)
	Pragma("noescape")
	firstA, firstC, firstB := AllocLocal(8), AllocLocal(8), AllocLocal(8)
	blocks, panels := AllocLocal(8), AllocLocal(8)
	keep := func(name string, to Mem) {
		Load(Param(name), scratch)
		MOVQ(scratch, to)
	}
	keep("a", firstA)
	keep("c", firstC)
	keep("blocks", blocks)
	Load(Param("last"), scratch)
	if wide > 1 {
		SUBQ(Imm(uint64(columns-l.Count)), scratch)
	}
	l.Prepare(scratch)
	stride := func(name string, to reg.Register) {
		Load(Param(name), to)
		SHLQ(Imm(2), to)
	}
	stride("lda", a1)
	stride("ldb", ldb)
	stride("ldc", ldc)
	if !byColumns {
		LEAQ(Mem{Base: a1, Index: a1, Scale: 2}, a3)
		LEAQ(Mem{Base: a1, Index: a1, Scale: 4}, a5)
		LEAQ(Mem{Base: a3, Index: a1, Scale: 4}, a7)
	}

	Label("block")
	MOVQ(firstC, c)
	keep("b", firstB)
	keep("panels", panels)

	Label("panel")
	MOVQ(firstA, a)
	if rows > 9 && !byColumns {
		LEAQ(Mem{Base: a, Index: a1, Scale: 8}, a9)
		ADDQ(a1, a9)
	}
	MOVQ(firstB, b)
	Load(Param("k"), left)
	Comment("What comes next, as if a had no gaps: the next rows, or as much depth again.")
	if byColumns {
		MOVQ(a1, ahead)
		IMULQ(left, ahead)
	} else {
		IMUL3Q(Imm(uint64(rows)), a1, ahead)
		ADDQ(a, ahead)
	}
	l.Panel(false)
	CMPQ(panels, Imm(1))
	JNE(LabelRef("start"))
	l.Panel(true)

	Label("start")
	Load(Param("add"), scratch)
	TESTQ(scratch, scratch)
	JZ(LabelRef("zero"))
	eachRow(l, sums, wide, l.MaskedLoad, func(m Mem, v Op) { VMOVUPS(m, v) })
	JMP(LabelRef("step"))
	Label("zero")
	for _, v := range sums {
		l.Zero(v)
	}

	Label("step")
	if byColumns {
		PREFETCHT1(Mem{Base: a, Index: ahead, Scale: 1})
	} else {
		PREFETCHT1(Mem{Base: ahead})
		ADDQ(Imm(uint64(4*rows)), ahead)
	}
	for i, v := range panel {
		m := Mem{Base: b, Disp: i * 4 * l.Count}
		if i == wide-1 {
			l.MaskedLoad(m, v)
		} else {
			VMOVUPS(m, v)
		}
	}
	for r := range rows {
		element := rowOf[r]
		if byColumns {
			element = Mem{Base: a, Disp: 4 * r}
		}
		v := spread[r%len(spread)]
		VBROADCASTSS(element, v)
		for i := range wide {
			l.Multiply(panel[i], v, sums[r*wide+i])
		}
	}
	ADDQ(ldb, b)
	if byColumns {
		ADDQ(a1, a)
	} else {
		ADDQ(Imm(4), a)
		if rows > 9 {
			ADDQ(Imm(4), a9)
		}
	}
	DECQ(left)
	JNZ(LabelRef("step"))

	Comment("Masked stores are slow on some CPUs: only where they must be.")
	plain := func(m Mem, v Op) { VMOVUPS(v, m) }
	CMPQ(panels, Imm(1))
	JNE(LabelRef("whole"))
	Load(Param("last"), scratch)
	CMPQ(scratch, Imm(uint64(columns)))
	JNE(LabelRef("ragged"))
	Label("whole")
	eachRow(l, sums, wide, plain, plain)
	ADDQ(Imm(uint64(4*columns)), c)
	Load(Param("nextB"), scratch)
	SHLQ(Imm(2), scratch)
	ADDQ(scratch, firstB)
	DECQ(panels)
	JNZ(LabelRef("panel"))
	JMP(LabelRef("next"))
	Label("ragged")
	eachRow(l, sums, wide, func(m Mem, v Op) { l.MaskedStore(v, m) }, plain)

	Label("next")
	if byColumns {
		ADDQ(Imm(uint64(4*rows)), firstA)
	} else {
		IMUL3Q(Imm(uint64(rows)), a1, scratch)
		ADDQ(scratch, firstA)
	}
	IMUL3Q(Imm(uint64(rows)), ldc, scratch)
	ADDQ(scratch, firstC)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// eachRow moves the sums from or to c, the last vector of a row by its own way.
func eachRow(l Lanes, sums []reg.Register, wide int, last, other func(m Mem, v Op)) {
	MOVQ(c, scratch)
	for i, v := range sums {
		at := i % wide
		m := Mem{Base: scratch, Disp: at * 4 * l.Count}
		if at < wide-1 {
			other(m, v)
			continue
		}
		last(m, v)
		if i < len(sums)-1 {
			ADDQ(ldc, scratch)
		}
	}
}
