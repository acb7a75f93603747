//go:build cuda

package device

import (
	"errors"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

var errAttention = errors.New("attention is not on the GPU yet")

// HeadDot is as tensor.Attentions says.
func (d *Device) HeadDot(y, x, a tensor.Matrix) { d.check(errAttention) }

// HeadDotBack is as tensor.Attentions says.
func (d *Device) HeadDotBack(dx, da, dy, x, a tensor.Matrix) { d.check(errAttention) }

// Attend is as tensor.Attentions says.
func (d *Device) Attend(y, stats tensor.Matrix, g *tensor.CSR, x, left, right tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	d.check(errAttention)
}

// AttendBack is as tensor.Attentions says.
func (d *Device) AttendBack(dx, dleft, dright tensor.Matrix, g *tensor.CSR, dy, stats, x, left, right tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	d.check(errAttention)
}

// AttendV2 is as tensor.Attentions says.
func (d *Device) AttendV2(y, stats tensor.Matrix, g *tensor.CSR, x, to, a tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	d.check(errAttention)
}

// AttendV2Back is as tensor.Attentions says.
func (d *Device) AttendV2Back(dx, dto, da tensor.Matrix, g *tensor.CSR, dy, stats, x, to, a tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	d.check(errAttention)
}
