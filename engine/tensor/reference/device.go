// Package reference implements a device in plain loops and float64, which other devices
// are compared with and gradients are checked on.
//
// One loop is one formula. Sums run by ascending index, on one goroutine. Where
// engine/tensor leaves a choice, the comments here settle it.
package reference

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Device is the reference. Operands that are only read may be of any floating-point type;
// results are F64, unless the operation converts.
type Device struct{}

var _ tensor.Device = (*Device)(nil)

// New returns a reference device. It holds no resources.
func New() *Device { return &Device{} }

// Name implements tensor.Device.
func (*Device) Name() string { return "reference (float64)" }

// Type returns F64.
func (*Device) Type() tensor.Type { return tensor.F64 }

// Close does nothing.
func (*Device) Close() {}

// Write implements tensor.Device.
func (*Device) Write(m tensor.Matrix, from []float64) {
	must(len(from) == m.Rows*m.Cols, "%d numbers written to %d x %d", len(from), m.Rows, m.Cols)
	for i := range m.Rows {
		store(m, i, from[i*m.Cols:][:m.Cols])
	}
}

// Read implements tensor.Device.
func (*Device) Read(to []float64, m tensor.Matrix) {
	must(len(to) == m.Rows*m.Cols, "%d numbers read from %d x %d", len(to), m.Rows, m.Cols)
	x := read(m)
	for i := range m.Rows {
		copy(to[i*m.Cols:], x.row(i))
	}
}

// Write32 implements tensor.Device.
func (d *Device) Write32(m tensor.Matrix, from []float32) {
	wide := make([]float64, len(from))
	for i, x := range from {
		wide[i] = float64(x)
	}
	d.Write(m, wide)
}

// Read32 implements tensor.Device.
func (d *Device) Read32(to []float32, m tensor.Matrix) {
	wide := make([]float64, len(to))
	d.Read(wide, m)
	for i, x := range wide {
		to[i] = float32(x)
	}
}

// must panics unless ok: a wrong shape is a bug of the caller.
func must(ok bool, format string, args ...any) {
	if !ok {
		panic("reference: " + fmt.Sprintf(format, args...))
	}
}

// mustBe panics unless m has this shape.
func mustBe(what string, m tensor.Matrix, rows, cols int) {
	must(m.Rows == rows && m.Cols == cols, "%s is %d x %d and not %d x %d", what, m.Rows, m.Cols, rows, cols)
}

// mustBeOrNone is mustBe for an argument that may be omitted.
func mustBeOrNone(what string, m tensor.Matrix, rows, cols int) {
	if !m.None() {
		mustBe(what, m, rows, cols)
	}
}
