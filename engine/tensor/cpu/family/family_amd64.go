package family

import "golang.org/x/sys/cpu"

func available() Family {
	switch {
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL:
		return AVX512
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return AVX2
	}
	return Generic
}

// BF16 reports whether the CPU can multiply BF16 numbers.
func BF16() bool { return Current() == AVX512 && cpu.X86.HasAVX512BF16 }
