package foreign

import "github.com/hopmesh/hopmesh/engine/tensor"

// Aggregate implements tensor.Device.
func (d *Device) Aggregate(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue) {
	if d.works() {
		d.cpu.Aggregate(near(y), d.graph(g), near(values), near(x), how, add, d.nearEnd(e))
	}
}

// AggregateBack implements tensor.Device.
func (d *Device) AggregateBack(dx tensor.Matrix, g *tensor.CSR, values, dy tensor.Matrix, how tensor.Aggregation, add bool) {
	if d.works() {
		d.cpu.AggregateBack(near(dx), d.graph(g), near(values), near(dy), how, add)
	}
}

// AggregateMax implements tensor.Device.
func (d *Device) AggregateMax(y, which tensor.Matrix, g *tensor.CSR, x tensor.Matrix) {
	if d.works() {
		d.cpu.AggregateMax(near(y), near(which), d.graph(g), near(x))
	}
}

// AggregateMaxBack implements tensor.Device.
func (d *Device) AggregateMaxBack(dx tensor.Matrix, g *tensor.CSR, dy, which tensor.Matrix, add bool) {
	if d.works() {
		d.cpu.AggregateMaxBack(near(dx), d.graph(g), near(dy), near(which), add)
	}
}

// HeadDot implements tensor.Device.
func (d *Device) HeadDot(y, x, a tensor.Matrix) {
	if d.works() {
		d.cpu.HeadDot(near(y), near(x), near(a))
	}
}

// HeadDotBack implements tensor.Device.
func (d *Device) HeadDotBack(dx, da, dy, x, a tensor.Matrix) {
	if d.works() {
		d.cpu.HeadDotBack(near(dx), near(da), near(dy), near(x), near(a))
	}
}

// Attend implements tensor.Device.
func (d *Device) Attend(y, stats tensor.Matrix, g *tensor.CSR, x, left, right tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	if d.works() {
		d.cpu.Attend(near(y), near(stats), d.graph(g), near(x), near(left), near(right), slope, drop, own)
	}
}

// AttendBack implements tensor.Device.
func (d *Device) AttendBack(dx, dleft, dright tensor.Matrix, g *tensor.CSR, dy, stats, x, left, right tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	if d.works() {
		d.cpu.AttendBack(near(dx), near(dleft), near(dright), d.graph(g), near(dy), near(stats), near(x), near(left), near(right), slope, drop, own)
	}
}

// AttendV2 implements tensor.Device.
func (d *Device) AttendV2(y, stats tensor.Matrix, g *tensor.CSR, x, to, a tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	if d.works() {
		d.cpu.AttendV2(near(y), near(stats), d.graph(g), near(x), near(to), near(a), slope, drop, own)
	}
}

// AttendV2Back implements tensor.Device.
func (d *Device) AttendV2Back(dx, dto, da tensor.Matrix, g *tensor.CSR, dy, stats, x, to, a tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	if d.works() {
		d.cpu.AttendV2Back(near(dx), near(dto), near(da), d.graph(g), near(dy), near(stats), near(x), near(to), near(a), slope, drop, own)
	}
}
