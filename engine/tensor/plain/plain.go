// Package plain has numbers as they lie in memory, which is how they travel: all machines
// that hopmesh runs on put the least significant byte first.
package plain

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Number is what lies in memory that any number may lie in.
type Number interface {
	~float32 | ~float64 | ~int32 | ~uint32 | ~uint16
}

// Bytes is the memory of numbers.
func Bytes[T Number](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// Numbers is memory as numbers. It begins at a multiple of their size.
func Numbers[T Number](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// Room is memory for so many bytes, where any number may begin.
func Room(bytes int) []byte {
	words := make([]uint64, (bytes+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))[:bytes]
}

// Read reads a matrix of a device as it lies in memory.
func Read(d tensor.Device, to []byte, m tensor.Matrix) {
	if d.Type() == tensor.F64 {
		d.Read(Numbers[float64](to), m)
		return
	}
	d.Read32(Numbers[float32](to), m)
}

// Write is the reverse.
func Write(d tensor.Device, m tensor.Matrix, from []byte) {
	if d.Type() == tensor.F64 {
		d.Write(m, Numbers[float64](from))
		return
	}
	d.Write32(m, Numbers[float32](from))
}
