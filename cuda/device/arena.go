//go:build cuda

package device

import (
	"fmt"
	"unsafe"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// slabBytes is what a slab is a multiple of: the driver gives no less.
const slabBytes = 2 << 20

// arena hands out slabs from the first on. Slabs stay until it is closed.
type arena struct {
	device *Device
	slabs  []driver.Memory
	slab   int // handed out from now
	used   int // bytes of it
	held   int
}

// NewArena is as tensor.Device says.
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

// Alloc is as tensor.Arena says. If memory can't be had the device has failed, and what
// is returned is nowhere.
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

// more grows by half at least if it can, so that growing is rare.
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

// nowhere is an address of nothing, as a matrix that is there has one. Go takes the
// lowest ones for damaged pointers.
const nowhere address = 1 << 16

// over is a matrix of the GPU's memory. What is no address of the host's is nothing to
// Go's collector.
func over(t tensor.Type, rows, cols int, base address) tensor.Matrix {
	return tensor.Over(t, rows, cols, cols, *(*unsafe.Pointer)(unsafe.Pointer(&base)))
}

// Reset is as tensor.Arena says.
func (a *arena) Reset() { a.slab, a.used = 0, 0 }

// Bytes is as tensor.Arena says.
func (a *arena) Bytes() int { return a.held }

// Close is as tensor.Arena says. What was handed out is gone.
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
