// Package dry is a device that computes nothing and counts memory: what a pass
// would take of an arena is found by doing the pass on it.
package dry

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Device does nothing, in no time. Nothing may look at its matrices.
type Device struct {
	of     tensor.Type
	beside int
}

var _ tensor.Device = (*Device)(nil)

// New makes one that says it computes with this type.
func New(t tensor.Type) *Device { return &Device{of: t} }

// Name is as tensor.Device says.
func (*Device) Name() string { return "dry" }

// Type is what New was told.
func (d *Device) Type() tensor.Type { return d.of }

// Close does nothing.
func (*Device) Close() {}

// Beside is how many bytes a device may keep beside arenas, for the largest
// operation that was asked for.
func (d *Device) Beside() int { return d.beside }

// attend counts what attention keeps on its way back: two numbers for each head of
// each edge, and a quarter more to grow.
func (d *Device) attend(heads int, g *tensor.CSR) {
	d.beside = max(d.beside, 10*heads*g.Entries())
}

// An Arena counts what it hands out.
type Arena struct {
	used, peak int
}

var _ tensor.Arena = (*Arena)(nil)

// Arena makes an arena whose Peak can be asked.
func (*Device) Arena() *Arena { return &Arena{} }

// NewArena is as tensor.Device says.
func (d *Device) NewArena(int) (tensor.Arena, error) { return d.Arena(), nil }

// alignment is the largest that an arena of any device has.
const alignment = 128

// ground is where every matrix begins. Views are addresses beyond it, which nobody
// follows.
var ground [alignment]byte

// Alloc is as tensor.Arena says.
func (a *Arena) Alloc(t tensor.Type, rows, cols int) tensor.Matrix {
	a.used += max(rows*cols*t.Bytes()+alignment-1, alignment) / alignment * alignment
	a.peak = max(a.peak, a.used)
	return tensor.Over(t, rows, cols, cols, unsafe.Pointer(&ground))
}

// Reset is as tensor.Arena says.
func (a *Arena) Reset() { a.used = 0 }

// Bytes is what it has handed out since the last Reset, and Peak the most of all
// times.
func (a *Arena) Bytes() int { return a.used }

// Peak is as Bytes.
func (a *Arena) Peak() int { return a.peak }

// Close is as tensor.Arena says.
func (a *Arena) Close() {}
