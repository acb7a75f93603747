//go:build cuda

package driver

// #include <cuda.h>
import "C"

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
)

// Pinned is host memory that the device reads and writes directly. It is not managed by
// Go's collector, and any goroutine on any thread may fill it for a Send.
type Pinned struct {
	bytes []byte
}

// Len returns the length in bytes.
func (p Pinned) Len() int { return len(p.bytes) }

// Bytes returns the memory itself. It must not be used after it was freed.
func (p Pinned) Bytes() []byte { return p.bytes }

// Numbers returns the memory as numbers, without an incomplete last one. It panics if the
// memory is not aligned.
func Numbers[T uint16 | int32 | uint32 | int64 | uint64 | float32](p Pinned) []T {
	at := unsafe.Pointer(unsafe.SliceData(p.bytes))
	if uintptr(at)%unsafe.Alignof(T(0)) != 0 {
		panic(fmt.Sprintf("driver: pinned memory at %p as numbers", at))
	}
	return unsafe.Slice((*T)(at), len(p.bytes)/int(unsafe.Sizeof(T(0))))
}

// Slice returns the bytes in [from, to), as for a slice.
func (p Pinned) Slice(from, to int) Pinned { return Pinned{p.bytes[from:to:to]} }

// AllocPinned allocates pinned memory, which all devices may use. The caller frees it, as
// a whole.
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

// HostAt returns host memory that is not Go's: part of a Pinned, or mapped memory, which
// the driver copies through its own buffers.
func HostAt(at unsafe.Pointer, bytes int) Pinned { return Pinned{unsafe.Slice((*byte)(at), bytes)} }

// FreePinned frees memory of AllocPinned.
func (t *Thread) FreePinned(p Pinned) error {
	return t.fail("cuMemFreeHost", cu.MemFreeHost(unsafe.Pointer(unsafe.SliceData(p.bytes))))
}
