//go:build ignore

// Writes what dense products do beside multiplying: transposing and adding.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

//gen:out ../cpu/gemm/moves

func main() {
	transpose()
	add()
	Generate()
}

// transpose writes 8 rows as 8 columns, blocks of 8 x 8 one after another.
func transpose() {
	TEXT("avx2Transpose", NOSPLIT, "func(to *float32, w int, from *float32, stride, blocks int)")
	Pragma("noescape")
	to := Load(Param("to"), GP64())
	w := Load(Param("w"), GP64())
	from := Load(Param("from"), GP64())
	row := Load(Param("stride"), GP64())
	blocks := Load(Param("blocks"), GP64())
	SHLQ(Imm(2), w)
	SHLQ(Imm(2), row)
	row3, row5, row7 := GP64(), GP64(), GP64()
	LEAQ(Mem{Base: row, Index: row, Scale: 2}, row3)
	LEAQ(Mem{Base: row, Index: row, Scale: 4}, row5)
	LEAQ(Mem{Base: row3, Index: row, Scale: 4}, row7)
	rows := [8]Mem{
		{Base: from}, {Base: from, Index: row, Scale: 1}, {Base: from, Index: row, Scale: 2},
		{Base: from, Index: row3, Scale: 1}, {Base: from, Index: row, Scale: 4},
		{Base: from, Index: row5, Scale: 1}, {Base: from, Index: row3, Scale: 2},
		{Base: from, Index: row7, Scale: 1},
	}

	Label("block")
	for half := range 2 {
		// Lane 0 of each vector has 4 numbers of row i, lane 1 of row i+4.
		var r [4]reg.VecVirtual
		for i := range r {
			r[i] = YMM()
			VMOVUPS(rows[i].Offset(16*half), r[i].AsX())
			VINSERTF128(Imm(1), rows[i+4].Offset(16*half), r[i], r[i])
		}
		low01, high01, low23, high23 := YMM(), YMM(), YMM(), YMM()
		VUNPCKLPS(r[1], r[0], low01)
		VUNPCKHPS(r[1], r[0], high01)
		VUNPCKLPS(r[3], r[2], low23)
		VUNPCKHPS(r[3], r[2], high23)
		for i := range 4 {
			column := YMM()
			pair := [2]reg.VecVirtual{low01, low23}
			if i >= 2 {
				pair = [2]reg.VecVirtual{high01, high23}
			}
			if i%2 == 0 {
				VUNPCKLPD(pair[1], pair[0], column)
			} else {
				VUNPCKHPD(pair[1], pair[0], column)
			}
			VMOVUPS(column, Mem{Base: to})
			ADDQ(w, to)
		}
	}
	ADDQ(Imm(32), from)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// add adds n numbers to others.
func add() {
	TEXT("avx2Add", NOSPLIT, "func(to, from *float32, n int)")
	Pragma("noescape")
	to := Load(Param("to"), GP64())
	from := Load(Param("from"), GP64())
	n := Load(Param("n"), GP64())
	SUBQ(Imm(8), n)
	JLT(LabelRef("rest"))
	Label("eight")
	v := YMM()
	VMOVUPS(Mem{Base: to}, v)
	VADDPS(Mem{Base: from}, v, v)
	VMOVUPS(v, Mem{Base: to})
	ADDQ(Imm(32), to)
	ADDQ(Imm(32), from)
	SUBQ(Imm(8), n)
	JGE(LabelRef("eight"))
	Label("rest")
	ADDQ(Imm(8), n)
	JZ(LabelRef("done"))
	Label("one")
	x := XMM()
	VMOVSS(Mem{Base: to}, x)
	VADDSS(Mem{Base: from}, x, x)
	VMOVSS(x, Mem{Base: to})
	ADDQ(Imm(4), to)
	ADDQ(Imm(4), from)
	DECQ(n)
	JNZ(LabelRef("one"))
	Label("done")
	VZEROUPPER()
	RET()
}
