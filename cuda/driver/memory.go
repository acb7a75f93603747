//go:build cuda

package driver

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
)

// Memory is a range of the device's memory. The zero Memory is empty.
type Memory struct {
	at    cu.DevicePtr
	bytes int
}

// Len returns the length in bytes.
func (m Memory) Len() int { return m.bytes }

// Address returns the device's address, for kernels that read addresses from memory.
func (m Memory) Address() uint64 { return uint64(m.at) }

// MemoryAt returns the memory at an address that Address returned.
func MemoryAt(address uint64, bytes int) Memory { return Memory{cu.DevicePtr(address), bytes} }

// Slice returns the bytes in [from, to). It panics if the bounds are out of range.
func (m Memory) Slice(from, to int) Memory {
	if from < 0 || from > to || to > m.bytes {
		panic(fmt.Sprintf("driver: bytes [%d:%d] of %d of a GPU's memory", from, to, m.bytes))
	}
	return Memory{m.at + cu.DevicePtr(from), to - from}
}

// Alloc allocates memory of the device. The caller frees it, as a whole.
func (t *Thread) Alloc(bytes int) (Memory, error) {
	if bytes <= 0 {
		return Memory{}, fmt.Errorf("%w: %d bytes of memory", ErrArgument, bytes)
	}
	at, err := cu.MemAlloc(int64(bytes))
	if err != nil {
		return Memory{}, fmt.Errorf("%d bytes of the GPU's memory: %w", bytes, t.fail("cuMemAlloc", err))
	}
	return Memory{at, bytes}, nil
}

// Free frees memory of Alloc.
func (t *Thread) Free(m Memory) error { return t.fail("cuMemFree", cu.MemFree(m.at)) }

// Zero fills m with zeros, in s's order.
func (t *Thread) Zero(m Memory, s Stream) error {
	if m.bytes == 0 {
		return nil
	}
	return t.fail("cuMemsetD8Async", cu.MemsetD8Async(m.at, 0, int64(m.bytes), s.s))
}

// Fill fills m with a word of four bytes, in s's order.
func (t *Thread) Fill(m Memory, word uint32, s Stream) error {
	if m.bytes%4 != 0 || m.at%4 != 0 {
		return fmt.Errorf("%w: %d bytes at %#x filled by words", ErrArgument, m.bytes, uintptr(m.at))
	}
	if m.bytes == 0 {
		return nil
	}
	return t.fail("cuMemsetD32Async", cu.MemsetD32Async(m.at, uint(word), int64(m.bytes/4), s.s))
}

// Send copies from pinned memory to the device in s's order. Neither may change until s
// has done the copy. It does not take Go memory, which the collector might move or free
// before the copy is done.
func (t *Thread) Send(to Memory, from Pinned, s Stream) error {
	if err := same(to.bytes, from.Len()); err != nil || to.bytes == 0 {
		return err
	}
	return t.fail("cuMemcpyHtoDAsync", cu.MemcpyHtoDAsync(to.at, unsafe.Pointer(&from.bytes[0]), int64(to.bytes), s.s))
}

// Fetch is the reverse of Send.
func (t *Thread) Fetch(to Pinned, from Memory, s Stream) error {
	if err := same(to.Len(), from.bytes); err != nil || from.bytes == 0 {
		return err
	}
	return t.fail("cuMemcpyDtoHAsync", cu.MemcpyDtoHAsync(unsafe.Pointer(&to.bytes[0]), from.at, int64(from.bytes), s.s))
}

// Copy copies within the device in s's order.
func (t *Thread) Copy(to, from Memory, s Stream) error {
	if err := same(to.bytes, from.bytes); err != nil || to.bytes == 0 {
		return err
	}
	return t.fail("cuMemcpyDtoDAsync", cu.MemcpyDtoDAsync(to.at, from.at, int64(to.bytes), s.s))
}

// SendNow is Send that has completed when it returns.
func (t *Thread) SendNow(to Memory, from Pinned) error {
	if err := same(to.bytes, from.Len()); err != nil || to.bytes == 0 {
		return err
	}
	return t.fail("cuMemcpyHtoD", cu.MemcpyHtoD(to.at, unsafe.Pointer(&from.bytes[0]), int64(to.bytes)))
}

// FetchNow is Fetch that has completed when it returns. It does not wait for streams.
func (t *Thread) FetchNow(to Pinned, from Memory) error {
	if err := same(to.Len(), from.bytes); err != nil || from.bytes == 0 {
		return err
	}
	return t.fail("cuMemcpyDtoH", cu.MemcpyDtoH(unsafe.Pointer(&to.bytes[0]), from.at, int64(from.bytes)))
}

func same(to, from int) error {
	if to != from {
		return fmt.Errorf("%w: a copy of %d bytes to %d", ErrArgument, from, to)
	}
	return nil
}
