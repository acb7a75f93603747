// Package plain converts between numbers and their bytes in memory, which is also how
// they are sent: all machines that hopmesh runs on are little-endian.
package plain

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Number is any type of numbers in memory.
type Number interface {
	~float32 | ~float64 | ~int32 | ~uint32 | ~uint16
}

// Bytes returns the memory of numbers.
func Bytes[T Number](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// Of returns the memory of a matrix without gaps, which must be the host's.
func Of(m tensor.Matrix) []byte {
	if m.Type == tensor.F64 {
		return Bytes(m.F64())
	}
	return Bytes(m.F32())
}

// Size returns how many bytes a matrix without gaps has.
func Size(m tensor.Matrix) int { return m.Rows * m.Cols * m.Type.Bytes() }

// Numbers returns memory viewed as numbers. It must be aligned to their size.
func Numbers[T Number](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// Room allocates so many bytes, aligned for any number.
func Room(bytes int) []byte {
	words := make([]uint64, (bytes+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))[:bytes]
}

// Read copies a device's matrix to memory unchanged.
func Read(d tensor.Device, to []byte, m tensor.Matrix) {
	if d.Type() == tensor.F64 {
		d.Read(Numbers[float64](to), m)
		return
	}
	d.Read32(Numbers[float32](to), m)
}

// Write is the inverse of Read.
func Write(d tensor.Device, m tensor.Matrix, from []byte) {
	if d.Type() == tensor.F64 {
		d.Write(m, Numbers[float64](from))
		return
	}
	d.Write32(m, Numbers[float32](from))
}

// Grow returns a buffer of so many bytes, aligned for any number: the given one if it is
// large enough, otherwise a new one. Its contents are undefined.
func Grow(buffer []byte, bytes int) []byte {
	if cap(buffer) >= bytes {
		return buffer[:bytes]
	}
	return Room(bytes)
}
