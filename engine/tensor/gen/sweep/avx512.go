package sweep

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// AVX512 are lanes of 16 numbers.
func AVX512() Lanes {
	l := Lanes{
		Prefix: "avx512",
		Count:  16,
		Prepare: func(wanted reg.GPPhysical) {
			MOVQ(wanted, reg.RCX)
			MOVQ(I32(-1), reg.RAX)
			SHLQ(reg.CL, reg.RAX)
			NOTQ(reg.RAX)
			KMOVW(reg.EAX, reg.K2)
			KXNORW(reg.K3, reg.K3, reg.K3)
		},
		Panel: func(last bool) {
			if last {
				KMOVW(reg.K2, reg.K1)
			} else {
				KMOVW(reg.K3, reg.K1)
			}
		},
		Zero:        func(v Op) { VPXORD(v, v, v) },
		MaskedLoad:  func(m Mem, v Op) { VMOVUPS_Z(m, reg.K1, v) },
		MaskedStore: func(v Op, m Mem) { VMOVUPS(v, reg.K1, m) },
		Multiply:    func(x, y, sums reg.Register) { VFMADD231PS(x, y, sums) },
	}
	for i := range 32 {
		l.Vectors = append(l.Vectors, [...]reg.Register{
			reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
			reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
			reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
			reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
		}[i])
	}
	return l
}

// HalfAVX512 are 8 lanes, for the sake of masks, which AVX2 has slower ones of.
func HalfAVX512() Lanes {
	l := AVX512()
	l.Count = 8
	for i, v := range l.Vectors {
		l.Vectors[i] = v.(reg.VecPhysical).AsY()
	}
	return l
}

// Each writes the kernels of all sizes.
func Each(whole, half Lanes) {
	for _, rows := range []int{14, 8, 4, 2, 1} {
		Kernels(whole, rows, 32)
	}
	for _, rows := range []int{14, 8, 4, 2, 1} {
		Kernels(whole, rows, 16)
	}
	for _, rows := range []int{14, 8, 4, 2, 1} {
		Kernels(half, rows, 8)
	}
}
