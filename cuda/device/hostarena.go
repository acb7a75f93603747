//go:build cuda

package device

import (
	"fmt"
	"unsafe"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"golang.org/x/sys/unix"
)

// hostArena allocates pinned memory or, if the driver has no more of that, mapped memory,
// which is copied more slowly. It calls the driver by itself, since it may be used
// concurrently with the lane that made it.
type hostArena struct {
	on    *driver.Thread
	slabs []hostSlab
	slab  int // current one
	used  int // bytes of the current slab
	held  int
}

// hostSlab is pinned or mapped memory.
type hostSlab struct {
	driver.Pinned
	mapped []byte
}

// HostArena implements tensor.Foreign.
func (d *Device) HostArena(bytes int) (tensor.Arena, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("an arena of %d bytes", bytes)
	}
	a := &hostArena{on: d.gpu.Guest()}
	if bytes > 0 {
		if err := a.grow(bytes); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// grow adds a slab.
func (a *hostArena) grow(bytes int) error {
	bytes = (bytes + slabBytes - 1) / slabBytes * slabBytes
	var s hostSlab
	err := a.on.Enter()
	if err == nil {
		s.Pinned, err = a.on.AllocPinned(bytes)
	}
	a.on.Leave()
	if err != nil {
		if s.mapped, err = unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
			return fmt.Errorf("take %d MiB of memory for an arena that holds %d MiB: %w", bytes>>20, a.held>>20, err)
		}
		budget.Outside(bytes)
		s.Pinned = driver.HostAt(unsafe.Pointer(unsafe.SliceData(s.mapped)), bytes)
	}
	a.slabs, a.held = append(a.slabs, s), a.held+bytes
	return nil
}

// Alloc implements tensor.Arena. If there is no memory at all, the process ends, as it
// does in Go.
func (a *hostArena) Alloc(t tensor.Type, rows, cols int) tensor.Matrix {
	bytes := aligned(max(1, rows*cols*t.Bytes()))
	for a.slab < len(a.slabs) && a.used+bytes > a.slabs[a.slab].Len() {
		a.slab, a.used = a.slab+1, 0
	}
	if a.slab == len(a.slabs) {
		a.more(bytes)
	}
	base := unsafe.Pointer(&a.slabs[a.slab].Bytes()[a.used])
	a.used += bytes
	return tensor.Over(t, rows, cols, cols, base)
}

// more adds a slab, if possible of half the arena's size or more, so that growing is
// rare.
func (a *hostArena) more(bytes int) {
	if bytes < a.held/2 && a.grow(a.held/2) == nil {
		return
	}
	if err := a.grow(bytes); err != nil {
		panic("device: " + err.Error())
	}
}

// Reset implements tensor.Arena.
func (a *hostArena) Reset() { a.slab, a.used = 0, 0 }

// Bytes implements tensor.Arena.
func (a *hostArena) Bytes() int { return a.held }

// Close implements tensor.Arena. All that was allocated becomes invalid; no copy of it
// may be in progress. Memory that the driver fails to free is freed with its context.
func (a *hostArena) Close() {
	for _, s := range a.slabs {
		if s.mapped != nil {
			budget.Outside(-len(s.mapped))
			_ = unix.Munmap(s.mapped)
			continue
		}
		if a.on.Enter() == nil {
			_ = a.on.FreePinned(s.Pinned)
		}
		a.on.Leave()
	}
	*a = hostArena{on: a.on}
}
