//go:build !amd64 && !arm64

package family

func available() Family { return Generic }

// BF16 says whether products of two BF16 numbers can be had.
func BF16() bool { return false }
