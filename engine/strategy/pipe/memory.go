package pipe

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Numbers travel as they lie in memory: all machines that hopmesh runs on put the least
// significant byte first.

// number is what is computed with.
type number interface{ ~float32 | ~float64 }

// numbers is memory as numbers. It begins at a multiple of their size.
func numbers[T number](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// room is memory for so many bytes, where any number may begin.
func room(bytes int) []byte {
	words := make([]uint64, (bytes+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))[:bytes]
}

// read reads a matrix of a device as it lies in memory.
func read(d tensor.Device, to []byte, m tensor.Matrix) {
	if d.Type() == tensor.F64 {
		d.Read(numbers[float64](to), m)
		return
	}
	d.Read32(numbers[float32](to), m)
}

// write is the reverse.
func write(d tensor.Device, m tensor.Matrix, from []byte) {
	if d.Type() == tensor.F64 {
		d.Write(m, numbers[float64](from))
		return
	}
	d.Write32(m, numbers[float32](from))
}

// bytes is how many a matrix takes where it travels.
func bytes(m tensor.Matrix) int { return m.Rows * m.Cols * m.Type.Bytes() }

// raw is the memory of numbers.
func raw[T number](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}
