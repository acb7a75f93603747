//go:build cuda

package driver

// #include <cuda.h>
import "C"

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
)

// Pinned is memory of this machine that the device reads and writes by itself. It
// is none of Go's: the collector does not know it, and any goroutine may fill it,
// on any thread, for a Send.
type Pinned struct {
	bytes []byte
}

// Len is its length in bytes.
func (p Pinned) Len() int { return len(p.bytes) }

// Bytes is the memory itself. It must not be used after it was freed.
func (p Pinned) Bytes() []byte { return p.bytes }

// Numbers is the memory as numbers; a rest of less than one is left out. A
// Pinned that begins within a number panics.
func Numbers[T uint16 | int32 | uint32 | int64 | uint64 | float32](p Pinned) []T {
	at := unsafe.Pointer(unsafe.SliceData(p.bytes))
	if uintptr(at)%unsafe.Alignof(T(0)) != 0 {
		panic(fmt.Sprintf("driver: pinned memory at %p as numbers", at))
	}
	return unsafe.Slice((*T)(at), len(p.bytes)/int(unsafe.Sizeof(T(0))))
}

// Slice is the bytes from from up to to, as a slice's.
func (p Pinned) Slice(from, to int) Pinned { return Pinned{p.bytes[from:to:to]} }

// AllocPinned takes pinned memory. Whoever takes it frees it, as a whole. All
// devices may use it.
func (t *Thread) AllocPinned(bytes int) (Pinned, error) {
	if bytes <= 0 {
		return Pinned{}, fmt.Errorf("%w: %d bytes of pinned memory", ErrArgument, bytes)
	}
	var at unsafe.Pointer
	if err := t.note(returned("cuMemHostAlloc", C.cuMemHostAlloc(&at, C.size_t(bytes), C.CU_MEMHOSTALLOC_PORTABLE))); err != nil {
		return Pinned{}, fmt.Errorf("%d bytes of pinned memory: %w", bytes, err)
	}
	return Pinned{unsafe.Slice((*byte)(at), bytes)}, nil
}

// HostAt is memory of this machine that is none of Go's either: of a Pinned, or mapped,
// which the driver copies by way of memory of its own.
func HostAt(at unsafe.Pointer, bytes int) Pinned { return Pinned{unsafe.Slice((*byte)(at), bytes)} }

// FreePinned gives back what AllocPinned took.
func (t *Thread) FreePinned(p Pinned) error {
	return t.fail("cuMemFreeHost", cu.MemFreeHost(unsafe.Pointer(unsafe.SliceData(p.bytes))))
}
