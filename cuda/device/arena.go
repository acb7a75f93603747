//go:build cuda

package device

import (
	"fmt"
	"unsafe"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// slabBytes is the granularity of slabs: the driver allocates no less.
const slabBytes = 2 << 20

// arena allocates from slabs, the first one first. Slabs stay until it is closed.
type arena struct {
	device *Device
	slabs  []driver.Memory
	slab   int // current one
	used   int // bytes of the current slab
	held   int
}

// NewArena implements tensor.Device.
func (d *Device) NewArena(bytes int) (tensor.Arena, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("an arena of %d bytes", bytes)
	}
	a := &arena{device: d}
	if bytes == 0 {
		return a, nil
	}
	if !d.begin() {
		return nil, d.err
	}
	defer d.end()
	if err := a.grow(bytes); err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	return a, nil
}

func (a *arena) grow(bytes int) error {
	bytes = (bytes + slabBytes - 1) / slabBytes * slabBytes
	slab, err := a.device.take(bytes)
	if err != nil {
		return fmt.Errorf("an arena that holds %d MiB: %w", a.held>>20, err)
	}
	a.slabs, a.held = append(a.slabs, slab), a.held+bytes
	return nil
}

// Alloc implements tensor.Arena. If there is no memory, the device has failed, and the
// matrix returned is nowhere.
func (a *arena) Alloc(t tensor.Type, rows, cols int) tensor.Matrix {
	bytes := aligned(max(1, rows*cols*t.Bytes()))
	for a.slab < len(a.slabs) && a.used+bytes > a.slabs[a.slab].Len() {
		a.slab, a.used = a.slab+1, 0
	}
	if a.slab == len(a.slabs) && !a.more(bytes) {
		return over(t, rows, cols, nowhere)
	}
	base := address(a.slabs[a.slab].Address()).plus(a.used)
	a.used += bytes
	return over(t, rows, cols, base)
}

// more adds a slab, if possible of half the arena's size or more, so that growing is
// rare.
func (a *arena) more(bytes int) bool {
	if !a.device.begin() {
		return false
	}
	defer a.device.end()
	if bytes < a.held/2 && a.grow(a.held/2) == nil {
		return true
	}
	return a.device.check(a.grow(bytes))
}

// nowhere is an invalid address for matrices that must not look empty. It is not lower,
// since Go takes the lowest addresses for corrupt pointers.
const nowhere address = 1 << 16

// over returns a matrix in the GPU's memory. Go's collector ignores pointers outside the
// host's memory.
func over(t tensor.Type, rows, cols int, base address) tensor.Matrix {
	return tensor.Over(t, rows, cols, cols, *(*unsafe.Pointer)(unsafe.Pointer(&base)))
}

// Reset implements tensor.Arena.
func (a *arena) Reset() { a.slab, a.used = 0, 0 }

// Bytes implements tensor.Arena.
func (a *arena) Bytes() int { return a.held }

// Close implements tensor.Arena. All that was allocated becomes invalid.
func (a *arena) Close() {
	d := a.device
	if len(a.slabs) > 0 && d.freeing() {
		defer d.end()
		for _, s := range a.slabs {
			d.check(d.on.Free(s))
		}
	}
	*a = arena{device: d}
}
