//go:build !amd64 && !arm64

package family

func available() Family { return Generic }

// BF16 reports whether the CPU can multiply BF16 numbers.
func BF16() bool { return false }
