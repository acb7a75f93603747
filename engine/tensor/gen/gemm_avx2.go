//go:build ignore

// Writes the kernels of dense products for AVX2.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/hopmesh/hopmesh/engine/tensor/gen/sweep"
)

//gen:out ../cpu/gemm/avx2

func main() {
	// Eight lanes that count and eight that don't: the mask of n lanes starts at 8-n.
	lanes := GLOBL("avx2Lanes", RODATA|NOPTR)
	for i := range 16 {
		var v U32
		if i < 8 {
			v = 0xffffffff
		}
		DATA(4*i, v)
	}
	vectors := sweep.Lanes{
		Prefix: "avx2",
		Count:  8,
		Prepare: func(wanted reg.GPPhysical) {
			NEGQ(wanted)
			LEAQ(lanes, reg.R14)
			LEAQ(Mem{Base: reg.R14, Index: wanted, Scale: 4, Disp: 32}, reg.R14)
		},
		Panel: func(last bool) {
			if last {
				VMOVUPS(Mem{Base: reg.R14}, reg.Y15)
			} else {
				VMOVUPS(lanes, reg.Y15)
			}
		},
		Zero:        func(v Op) { VXORPS(v, v, v) },
		MaskedLoad:  func(m Mem, v Op) { VMASKMOVPS(m, reg.Y15, v) },
		MaskedStore: func(v Op, m Mem) { VMASKMOVPS(v, reg.Y15, m) },
		Multiply:    func(x, y, sums reg.Register) { VFMADD231PS(x, y, sums) },
		Vectors: []reg.Register{
			reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
			reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14,
		},
	}
	for _, rows := range []int{6, 4, 2, 1} {
		sweep.Kernels(vectors, rows, 16)
	}
	for _, rows := range []int{12, 6, 4, 2, 1} {
		sweep.Kernels(vectors, rows, 8)
	}
	Generate()
}
