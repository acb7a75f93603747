//go:build ignore

// Writes the kernels that follow edges for AVX-512.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/hopmesh/hopmesh/engine/tensor/gen/spans"
)

//gen:out ../cpu/edges/avx512

func main() {
	half := func(m Mem, last bool) {
		if last {
			VPMOVZXWD_Z(m, reg.K1, reg.Z29)
		} else {
			VPMOVZXWD(m, reg.Z29)
		}
		VPSLLD(Imm(16), reg.Z29, reg.Z29)
	}
	vectors := spans.Vectors{
		Suffix: "AVX512",
		Lanes:  16,
		Most:   16,
		Prepare: func(tail reg.GPPhysical, _ bool) {
			// tail is CX, by which to shift.
			MOVQ(I32(-1), reg.R11)
			SHLQ(reg.CL, reg.R11)
			NOTQ(reg.R11)
			KMOVW(reg.R11L, reg.K1)
		},
		Sum: func(i int) reg.Register {
			return []reg.Register{
				reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
				reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
			}[i]
		},
		Weight:  reg.Z31,
		Weights: reg.Z30,
		Other:   reg.Z29,
		Zero:    func(v Op) { VPXORD(v, v, v) },
		Load: func(m Mem, v Op, last bool) {
			if last {
				VMOVUPS_Z(m, reg.K1, v)
			} else {
				VMOVUPS(m, v)
			}
		},
		Store: func(v Op, m Mem, last bool) {
			if last {
				VMOVUPS(v, reg.K1, m)
			} else {
				VMOVUPS(v, m)
			}
		},
		Add: func(m Mem, sum Op, isHalf, last bool) {
			switch {
			case isHalf:
				half(m, last)
				VADDPS(reg.Z29, sum, sum)
			case last:
				VADDPS(m, sum, reg.K1, sum)
			default:
				VADDPS(m, sum, sum)
			}
		},
		Weigh: func(m Mem, weight, sum Op, isHalf, last bool) {
			switch {
			case isHalf:
				half(m, last)
				VFMADD231PS(reg.Z29, weight, sum)
			case last:
				VFMADD231PS(m, weight, reg.K1, sum)
			default:
				VFMADD231PS(m, weight, sum)
			}
		},
	}
	for _, k := range spans.Kinds {
		spans.Sum(vectors, k)
	}
	Generate()
}
