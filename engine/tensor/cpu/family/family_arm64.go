package family

// All arm64 CPUs have it.
func available() Family { return NEON }

// BF16 reports whether the CPU can multiply BF16 numbers.
func BF16() bool { return false }
