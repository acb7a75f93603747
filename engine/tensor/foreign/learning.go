package foreign

import "github.com/hopmesh/hopmesh/engine/tensor"

// Adam implements tensor.Device.
func (d *Device) Adam(w, g, m, v tensor.Matrix, o tensor.AdamStep) {
	if d.works() {
		d.cpu.Adam(near(w), near(g), near(m), near(v), o)
	}
}

// SGD implements tensor.Device.
func (d *Device) SGD(w, g, m tensor.Matrix, o tensor.SGDStep) {
	if d.works() {
		d.cpu.SGD(near(w), near(g), near(m), o)
	}
}

// CrossEntropy implements tensor.Device.
func (d *Device) CrossEntropy(dz, z tensor.Matrix, labels []int32, scale float64) (loss float64, right int) {
	if !d.works() {
		return 0, 0
	}
	return d.judged(d.cpu.CrossEntropy(near(dz), near(z), labels, scale))
}

// BinaryCrossEntropy implements tensor.Device.
func (d *Device) BinaryCrossEntropy(dz, z tensor.Matrix, labels []int32, scale float64) (loss float64, right int) {
	if !d.works() {
		return 0, 0
	}
	return d.judged(d.cpu.BinaryCrossEntropy(near(dz), near(z), labels, scale))
}
