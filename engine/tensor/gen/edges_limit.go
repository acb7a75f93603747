//go:build ignore

// Writes the kernel that reads rows at random, and nothing else.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

//gen:out ../cpu/edges/limit/gather

func main() {
	TEXT("gather", NOSPLIT, "func(sum *float32, x *byte, stride int, indices *int32, n int, lines int, ahead int)")
	Pragma("noescape")
	Doc("gather adds up lines of 64 bytes of the rows that n indices name, and fetches the row so many indices ahead.")
	x, stride := reg.RBX, reg.R8
	index, n := reg.RSI, reg.RCX
	lines, ahead := reg.R9, reg.R10
	row, fetched, left := reg.RDX, reg.R11, reg.R12
	Load(Param("x"), x)
	Load(Param("stride"), stride)
	Load(Param("indices"), index)
	Load(Param("n"), n)
	Load(Param("lines"), lines)
	Load(Param("ahead"), ahead)
	sums := []reg.Register{reg.Y0, reg.Y1, reg.Y2, reg.Y3}
	for _, s := range sums {
		VXORPS(s, s, s)
	}
	Label("row")
	MOVLQSX(Mem{Base: index, Index: ahead, Scale: 4}, fetched)
	IMULQ(stride, fetched)
	ADDQ(x, fetched)
	MOVLQSX(Mem{Base: index}, row)
	ADDQ(Imm(4), index)
	IMULQ(stride, row)
	ADDQ(x, row)
	MOVQ(lines, left)
	// Two lines at a time, and an odd one first.
	BTQ(Imm(0), left)
	JNC(LabelRef("even"))
	PREFETCHT1(Mem{Base: fetched})
	VADDPS(Mem{Base: row}, reg.Y0, reg.Y0)
	VADDPS(Mem{Base: row, Disp: 32}, reg.Y1, reg.Y1)
	ADDQ(Imm(64), fetched)
	ADDQ(Imm(64), row)
	Label("even")
	SHRQ(Imm(1), left)
	JZ(LabelRef("next"))
	Label("lines")
	PREFETCHT1(Mem{Base: fetched})
	PREFETCHT1(Mem{Base: fetched, Disp: 64})
	for i, s := range sums {
		VADDPS(Mem{Base: row, Disp: 32 * i}, s, s)
	}
	SUBQ(I8(-128), fetched) // one byte shorter than to add 128
	SUBQ(I8(-128), row)
	DECQ(left)
	JNZ(LabelRef("lines"))
	Label("next")
	DECQ(n)
	JNZ(LabelRef("row"))
	VADDPS(reg.Y1, reg.Y0, reg.Y0)
	VADDPS(reg.Y3, reg.Y2, reg.Y2)
	VADDPS(reg.Y2, reg.Y0, reg.Y0)
	Load(Param("sum"), reg.RAX)
	VMOVUPS(reg.Y0, Mem{Base: reg.RAX})
	VZEROUPPER()
	RET()
	Generate()
}
