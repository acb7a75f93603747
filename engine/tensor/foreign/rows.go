package foreign

import "github.com/hopmesh/hopmesh/engine/tensor"

// MatMul implements tensor.Device.
func (d *Device) MatMul(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
	if d.works() {
		d.cpu.MatMul(near(c), near(a), near(b), shape, add, d.nearEnd(e))
	}
}

// Zero implements tensor.Device.
func (d *Device) Zero(m tensor.Matrix) {
	if d.works() {
		d.cpu.Zero(near(m))
	}
}

// Combine implements tensor.Device.
func (d *Device) Combine(y tensor.Matrix, alpha float64, a tensor.Matrix, beta float64, b tensor.Matrix) {
	if d.works() {
		d.cpu.Combine(near(y), alpha, near(a), beta, near(b))
	}
}

// Apply implements tensor.Device.
func (d *Device) Apply(y, x tensor.Matrix, e *tensor.Epilogue) {
	if d.works() {
		d.cpu.Apply(near(y), near(x), d.nearEnd(e))
	}
}

// ApplyBack implements tensor.Device.
func (d *Device) ApplyBack(dx, dbias, dy, y tensor.Matrix, e *tensor.Epilogue) {
	if d.works() {
		d.cpu.ApplyBack(near(dx), near(dbias), near(dy), near(y), d.nearEnd(e))
	}
}

// ScatterAdd implements tensor.Device.
func (d *Device) ScatterAdd(y, x tensor.Matrix, rows []int32) {
	if d.works() {
		d.cpu.ScatterAdd(near(y), near(x), rows)
	}
}

// ScaleRows implements tensor.Device.
func (d *Device) ScaleRows(y, x, scale tensor.Matrix) {
	if d.works() {
		d.cpu.ScaleRows(near(y), near(x), near(scale))
	}
}

// LayerNorm implements tensor.Device.
func (d *Device) LayerNorm(y, stats, x, gamma, beta tensor.Matrix, e *tensor.Epilogue) {
	if d.works() {
		d.cpu.LayerNorm(near(y), near(stats), near(x), near(gamma), near(beta), d.nearEnd(e))
	}
}

// LayerNormBack implements tensor.Device.
func (d *Device) LayerNormBack(dx, dgamma, dbeta, dy, x, stats, gamma tensor.Matrix) {
	if d.works() {
		d.cpu.LayerNormBack(near(dx), near(dgamma), near(dbeta), near(dy), near(x), near(stats), near(gamma))
	}
}

// Max implements tensor.Device.
func (d *Device) Max(y, which, x tensor.Matrix, index int, first bool) {
	if d.works() {
		d.cpu.Max(near(y), near(which), near(x), index, first)
	}
}

// MaxBack implements tensor.Device.
func (d *Device) MaxBack(dx, dy, which tensor.Matrix, index int) {
	if d.works() {
		d.cpu.MaxBack(near(dx), near(dy), near(which), index)
	}
}

// ColumnSums implements tensor.Device.
func (d *Device) ColumnSums(sums, x tensor.Matrix) {
	if d.works() {
		d.cpu.ColumnSums(near(sums), near(x))
	}
}

// Densify implements tensor.Device.
func (d *Device) Densify(y tensor.Matrix, g *tensor.CSR) {
	if d.works() {
		d.cpu.Densify(near(y), d.graph(g))
	}
}

// DropValues implements tensor.Device.
func (d *Device) DropValues(to, from tensor.Matrix, g *tensor.CSR, drop tensor.Dropout) {
	if d.works() {
		d.cpu.DropValues(near(to), near(from), d.graph(g), drop)
	}
}

// Gather implements tensor.Device.
func (d *Device) Gather(y tensor.Matrix, parts []tensor.Part, ids []uint32) {
	if !d.works() {
		return
	}
	d.parts = d.parts[:0]
	for _, p := range parts {
		d.parts = append(d.parts, tensor.Part{First: p.First, X: near(p.X)})
	}
	d.cpu.Gather(near(y), d.parts, ids)
}

// Finite implements tensor.Device.
func (d *Device) Finite(m tensor.Matrix) bool { return !d.works() || d.found(d.cpu.Finite(near(m))) }
