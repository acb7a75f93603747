package p3

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/headroom"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Numbers travel as they lie in memory: all machines that hopmesh runs on put the least
// significant byte first.

// number is what lies in memory that any number may lie in.
type number interface {
	~float32 | ~float64 | ~int32 | ~uint32 | ~uint16
}

// bytesOf is the memory of numbers.
func bytesOf[T number](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// numbers is memory as numbers. It begins at a multiple of their size.
func numbers[T number](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// room makes place for so many bytes, where any number may begin; what was there may be
// lost.
func room(b []byte, bytes int) []byte {
	if cap(b) >= bytes {
		return b[:bytes]
	}
	words := make([]uint64, (bytes+bytes/8+7)/8)
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

// resize returns a slice of n elements that hold anything, or what they held.
func resize[E any](s []E, n int) []E { return slices.Grow(s[:0], n)[:n] }

// fits says what is short of what columns take.
func fits(needs, memory uint64) error {
	advice := "allow more with `hopmesh agent --memory`"
	if memory == 0 {
		memory, advice = headroom.Available(), "free some"
	}
	if needs <= memory {
		return nil
	}
	const mib = 1 << 20
	return fmt.Errorf("this node's columns of the features of all vertices take %.1f MiB of memory and %.1f MiB are left: share the job among more nodes, %s, or choose another strategy, such as leap",
		float64(needs)/mib, float64(memory)/mib, advice)
}
