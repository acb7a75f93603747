package foreign

import "github.com/hopmesh/hopmesh/engine/tensor"

// Write implements tensor.Device.
func (d *Device) Write(m tensor.Matrix, from []float64) {
	if d.works() {
		d.cpu.Write(near(m), from)
	}
}

// Read implements tensor.Device.
func (d *Device) Read(to []float64, m tensor.Matrix) {
	if d.works() {
		d.cpu.Read(to, near(m))
	}
}

// Write32 implements tensor.Device.
func (d *Device) Write32(m tensor.Matrix, from []float32) {
	if d.works() {
		d.cpu.Write32(near(m), from)
	}
}

// Read32 implements tensor.Device.
func (d *Device) Read32(to []float32, m tensor.Matrix) {
	if d.works() {
		d.cpu.Read32(to, near(m))
	}
}
