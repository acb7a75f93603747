//go:build ignore

// Writes the kernels of dense products of BF16 numbers, and what makes those of
// F32: pairs of neighbours in depth, each pair in the place of one F32.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/hopmesh/hopmesh/engine/tensor/gen/sweep"
)

//gen:out ../cpu/gemm/bf16

func main() {
	whole, half := sweep.AVX512(), sweep.HalfAVX512()
	for l, length := range map[*sweep.Lanes]uint32{&whole: 2, &half: 1} {
		l.Prefix = "bf16"
		l.Multiply = func(x, y, sums reg.Register) { instruction(0x52, length, number(sums), number(x), number(y)) }
	}
	sweep.Each(whole, half)
	along()
	across()
	Generate()
}

// instruction writes one that avo does not know, EVEX.F3.0F38.W0 of vectors of 128
// bits times 2 to the length: 0x52 is VDPBF16PS, 0x72 VCVTNEPS2BF16.
func instruction(opcode, length, to, first, second uint32) {
	not := func(n, bit uint32) uint32 { return ^(n >> bit) & 1 }
	p0 := not(to, 3)<<7 | not(second, 4)<<6 | not(second, 3)<<5 | not(to, 4)<<4 | 2
	p1 := (^first&15)<<3 | 1<<2 | 2
	p2 := length<<5 | not(first, 4)<<3
	Instruction(&ir.Instruction{Opcode: "LONG", Operands: []Op{U32(0x62 | p0<<8 | p1<<16 | p2<<24)}})
	Instruction(&ir.Instruction{Opcode: "WORD", Operands: []Op{U16(opcode | (0xc0|to&7<<3|second&7)<<8)}})
}

// number is that of a vector register.
func number(r reg.Register) uint32 { return uint32(r.(reg.Physical).PhysicalIndex()) }

// round makes BF16, in half a vector, of F32.
func round(from, to reg.Register) { instruction(0x72, 2, number(to), 0, number(from)) }

// The registers of what rounds.
var (
	to, ldTo     = reg.RDI, reg.R8
	from, ldFrom = reg.RSI, reg.R9
	rows, n      = reg.RDX, reg.R10
	write, read  = reg.R11, reg.R12
	second       = reg.R13 // beside read, the row below
	left         = reg.RBX
)

// start loads the arguments and puts the mask of what n leaves over 16 into k1.
func start(name string) {
	TEXT(name, NOSPLIT, "func(to *float32, ldTo int, from *float32, ldFrom, rows, n int)")
	Pragma("noescape")
	Load(Param("to"), to)
	Load(Param("ldTo"), ldTo)
	Load(Param("from"), from)
	Load(Param("ldFrom"), ldFrom)
	Load(Param("rows"), rows)
	Load(Param("n"), n)
	SHLQ(Imm(2), ldTo)
	SHLQ(Imm(2), ldFrom)
	MOVQ(n, reg.RCX)
	ANDQ(Imm(15), reg.RCX)
	MOVQ(I32(-1), reg.RAX)
	SHLQ(reg.CL, reg.RAX)
	NOTQ(reg.RAX)
	KMOVW(reg.EAX, reg.K1)
}

// along rounds rows of n numbers. It writes multiples of 16, the last with zeros.
func along() {
	start("bf16Along")
	Label("row")
	MOVQ(to, write)
	MOVQ(from, read)
	MOVQ(n, left)
	SUBQ(Imm(16), left)
	JLT(LabelRef("rest"))
	Label("whole")
	PREFETCHT1(Mem{Base: read, Index: ldFrom, Scale: 4})
	VMOVUPS(Mem{Base: read}, reg.Z0)
	round(reg.Z0, reg.Y0)
	VMOVUPS(reg.Y0, Mem{Base: write})
	ADDQ(Imm(64), read)
	ADDQ(Imm(32), write)
	SUBQ(Imm(16), left)
	JGE(LabelRef("whole"))
	Label("rest")
	CMPQ(left, I32(-16))
	JEQ(LabelRef("next"))
	VMOVUPS_Z(Mem{Base: read}, reg.K1, reg.Z0)
	round(reg.Z0, reg.Y0)
	VMOVUPS(reg.Y0, Mem{Base: write})
	Label("next")
	ADDQ(ldFrom, from)
	ADDQ(ldTo, to)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// across rounds rows of n numbers, two rows into one of pairs. Those of the last
// row are paired with zeros if it is alone.
func across() {
	start("bf16Across")
	pair := func() {
		round(reg.Z0, reg.Y0)
		round(reg.Z1, reg.Y1)
		VPMOVZXWD(reg.Y0, reg.Z0)
		VPMOVZXWD(reg.Y1, reg.Z1)
		VPSLLD(Imm(16), reg.Z1, reg.Z1)
		VPORD(reg.Z0, reg.Z1, reg.Z0)
	}
	Comment("Which lanes of the second row count: all, or none.")
	KXNORW(reg.K3, reg.K3, reg.K3)
	Label("row")
	MOVQ(to, write)
	MOVQ(from, read)
	LEAQ(Mem{Base: from, Index: ldFrom, Scale: 1}, second)
	CMPQ(rows, Imm(1))
	JNE(LabelRef("two"))
	KXORW(reg.K3, reg.K3, reg.K3)
	MOVQ(read, second)
	Label("two")
	KANDW(reg.K1, reg.K3, reg.K2)
	MOVQ(n, left)
	SUBQ(Imm(16), left)
	JLT(LabelRef("rest"))
	Label("whole")
	PREFETCHT1(Mem{Base: read, Index: ldFrom, Scale: 8})
	PREFETCHT1(Mem{Base: second, Index: ldFrom, Scale: 8})
	VMOVUPS(Mem{Base: read}, reg.Z0)
	VMOVUPS_Z(Mem{Base: second}, reg.K3, reg.Z1)
	pair()
	VMOVUPS(reg.Z0, Mem{Base: write})
	ADDQ(Imm(64), read)
	ADDQ(Imm(64), second)
	ADDQ(Imm(64), write)
	SUBQ(Imm(16), left)
	JGE(LabelRef("whole"))
	Label("rest")
	CMPQ(left, I32(-16))
	JEQ(LabelRef("next"))
	VMOVUPS_Z(Mem{Base: read}, reg.K1, reg.Z0)
	VMOVUPS_Z(Mem{Base: second}, reg.K2, reg.Z1)
	pair()
	VMOVUPS(reg.Z0, reg.K1, Mem{Base: write})
	Label("next")
	LEAQ(Mem{Base: from, Index: ldFrom, Scale: 2}, from)
	ADDQ(ldTo, to)
	SUBQ(Imm(2), rows)
	JGT(LabelRef("row"))
	VZEROUPPER()
	RET()
}
