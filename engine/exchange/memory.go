package exchange

import "unsafe"

// Numbers travel as they lie in memory: all machines that hopmesh runs on are
// little-endian.

// raw returns the memory of numbers.
func raw[T Number](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*sizeOf[T]())
}

// numbers returns memory as numbers. It must be aligned for them.
func numbers[T Number](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/sizeOf[T]())
}

func sizeOf[T Number]() int { return int(unsafe.Sizeof(*new(T))) }

// bytesOf returns the bytes of memory that is aligned for any number.
func bytesOf(s []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 8*len(s))
}

// grow makes room for so many bytes; the content may be lost.
func grow(s []uint64, bytes int) []uint64 {
	words := (bytes + 7) / 8
	if cap(s) < words {
		return make([]uint64, words)
	}
	return s[:words]
}

// add adds numbers to others. There is one such loop, which is not inlined: even of two
// NaNs the same one is kept wherever sums are made.
//
//go:noinline
func add[T Number](to, numbers []T) {
	numbers = numbers[:len(to)]
	for i := range to {
		to[i] += numbers[i]
	}
}
