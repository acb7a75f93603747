package gemm

import (
	"golang.org/x/sys/cpu"

	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
)

// families are all that this CPU has, whatever the process computes with.
func families() []family.Family {
	all := []family.Family{family.Generic}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append(all, family.AVX2)
	}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL {
		all = append(all, family.AVX512)
	}
	return all
}
