//go:build ignore

// Writes the kernels that follow edges for AVX2.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/hopmesh/hopmesh/engine/tensor/gen/spans"
)

//gen:out ../cpu/edges/avx2

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
	// One word that counts: the mask of word n-1 starts at 8-n.
	word := GLOBL("avx2Word", RODATA|NOPTR)
	for i := range 16 {
		var v U16
		if i == 7 {
			v = 0xffff
		}
		DATA(2*i, v)
	}
	// The last vector of BF16 is read as pairs, and its last number once more by
	// itself, which it is if their count is odd.
	half := func(m Mem, last bool) {
		if !last {
			VPMOVZXWD(m, reg.Y13)
		} else {
			VPMASKMOVD(m, reg.X15, reg.X13)
			m.Index, m.Scale = reg.R15, 2
			m.Disp -= 2
			VPBROADCASTW(m, reg.X12)
			VPBLENDVB(reg.X11, reg.X12, reg.X13, reg.X13)
			VPMOVZXWD(reg.X13, reg.Y13)
		}
		VPSLLD(Imm(16), reg.Y13, reg.Y13)
	}
	vectors := spans.Vectors{
		Suffix: "AVX2",
		Lanes:  8,
		Most:   11,
		Prepare: func(tail reg.GPPhysical, isHalf bool) {
			NEGQ(tail)
			if isHalf {
				LEAQ(word, reg.R11)
				VMOVDQU(Mem{Base: reg.R11, Index: tail, Scale: 2, Disp: 16}, reg.X11)
			}
			LEAQ(lanes, reg.R11)
			VMOVDQU(Mem{Base: reg.R11, Index: tail, Scale: 4, Disp: 32}, reg.Y14)
			if isHalf {
				NEGQ(tail)
				MOVQ(tail, reg.R15)
				SHRQ(Imm(1), tail)
				NEGQ(tail)
				VMOVDQU(Mem{Base: reg.R11, Index: tail, Scale: 4, Disp: 32}, reg.X15)
			}
		},
		Sum: func(i int) reg.Register {
			return []reg.Register{
				reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10,
			}[i]
		},
		Zero: func(v Op) { VXORPS(v, v, v) },
		Load: func(m Mem, v Op, last bool) {
			if last {
				VMASKMOVPS(m, reg.Y14, v)
			} else {
				VMOVUPS(m, v)
			}
		},
		Store: func(v Op, m Mem, last bool) {
			if last {
				VMASKMOVPS(v, reg.Y14, m)
			} else {
				VMOVUPS(v, m)
			}
		},
		Add: func(m Mem, sum Op, isHalf, last bool) {
			switch {
			case isHalf:
				half(m, last)
				VADDPS(reg.Y13, sum, sum)
			case last:
				VMASKMOVPS(m, reg.Y14, reg.Y13)
				VADDPS(reg.Y13, sum, sum)
			default:
				VADDPS(m, sum, sum)
			}
		},
		Weigh: func(m Mem, weight, sum Op, isHalf, last bool) {
			switch {
			case isHalf:
				half(m, last)
				VFMADD231PS(reg.Y13, weight, sum)
			case last:
				VMASKMOVPS(m, reg.Y14, reg.Y13)
				VFMADD231PS(reg.Y13, weight, sum)
			default:
				VFMADD231PS(m, weight, sum)
			}
		},
	}
	for _, k := range spans.Kinds {
		// Masks and what is read take what the weights of heads don't.
		vectors.Weight, vectors.Weights, vectors.Other = reg.Y12, reg.Y15, reg.Y13
		if k.Half {
			vectors.Weight, vectors.Most = reg.Y10, 10
		}
		spans.Sum(vectors, k)
	}
	Generate()
}
