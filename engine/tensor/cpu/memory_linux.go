package cpu

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/budget"
)

// reserve maps memory aligned to huge pages. Whether huge pages are used is up to the
// kernel.
func reserve(bytes int) ([]byte, error) {
	if err := budget.Room(bytes + huge); err != nil {
		return nil, err
	}
	all, err := unix.MmapPtr(-1, 0, nil, uintptr(bytes+huge), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	// Unmap what lies before and after.
	before := -uintptr(all) & (huge - 1)
	slab := unsafe.Add(all, before)
	if before > 0 {
		err = unix.MunmapPtr(all, before)
	}
	if after := huge - before; err == nil && after > 0 {
		err = unix.MunmapPtr(unsafe.Add(slab, bytes), after)
	}
	if err != nil {
		return nil, err
	}
	memory := unsafe.Slice((*byte)(slab), bytes)
	// A kernel without huge pages rejects the advice: that is only slower.
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE)
	budget.Outside(bytes)
	return memory, nil
}

// release unmaps memory. It can't fail for what reserve returned.
func release(memory []byte) {
	_ = unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(memory)), uintptr(len(memory)))
	budget.Outside(-len(memory))
}
