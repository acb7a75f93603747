// Package dry implements a device that computes nothing and counts memory: running a pass
// on it yields the arena size that the pass needs.
package dry

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Device does nothing, in no time. Its matrices must not be accessed.
type Device struct {
	of     tensor.Type
	beside int
}

var _ tensor.Device = (*Device)(nil)

// New returns a device that reports this type.
func New(t tensor.Type) *Device { return &Device{of: t} }

// Name implements tensor.Device.
func (*Device) Name() string { return "dry" }

// Type returns the type given to New.
func (d *Device) Type() tensor.Type { return d.of }

// Close does nothing.
func (*Device) Close() {}

// Beside returns how many bytes a device may keep beside arenas, for the largest
// operation so far.
func (d *Device) Beside() int { return d.beside }

// attend counts what attention keeps for its backward pass: two numbers per head of each
// edge, and a quarter more to grow.
func (d *Device) attend(heads int, g *tensor.CSR) {
	d.beside = max(d.beside, 10*heads*g.Entries())
}

// An Arena counts the memory it allocates.
type Arena struct {
	used, peak int
}

var _ tensor.Arena = (*Arena)(nil)

// Arena returns an arena with a Peak method.
func (*Device) Arena() *Arena { return &Arena{} }

// NewArena implements tensor.Device.
func (d *Device) NewArena(int) (tensor.Arena, error) { return d.Arena(), nil }

// alignment is the largest of any device's arena.
const alignment = 128

// ground is the address of every matrix. Views are addresses beyond it, which are never
// dereferenced.
var ground [alignment]byte

// Alloc implements tensor.Arena.
func (a *Arena) Alloc(t tensor.Type, rows, cols int) tensor.Matrix {
	a.used += max(rows*cols*t.Bytes()+alignment-1, alignment) / alignment * alignment
	a.peak = max(a.peak, a.used)
	return tensor.Over(t, rows, cols, cols, unsafe.Pointer(&ground))
}

// Reset implements tensor.Arena.
func (a *Arena) Reset() { a.used = 0 }

// Bytes returns the bytes allocated since the last Reset.
func (a *Arena) Bytes() int { return a.used }

// Peak returns the maximum of Bytes so far.
func (a *Arena) Peak() int { return a.peak }

// Close implements tensor.Arena.
func (a *Arena) Close() {}
