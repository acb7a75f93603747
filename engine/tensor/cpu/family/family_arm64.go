package family

// All of them have it.
func available() Family { return NEON }

// BF16 says whether products of two BF16 numbers can be had.
func BF16() bool { return false }
