//go:build cuda

package device

import (
	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Zero implements tensor.Rows.
func (d *Device) Zero(m tensor.Matrix) {
	if m.Rows == 0 || m.Cols == 0 || !d.begin() {
		return
	}
	defer d.end()
	row := m.Cols * m.Type.Bytes()
	switch {
	case m.Stride == m.Cols || m.Rows == 1:
		d.clear(addressOf(m), m.Rows*row)
	case m.Type == tensor.BF16:
		d.zeroRows(m)
	default:
		m.Type = tensor.F32 // whose 0 has the same bits
		d.zeroRows(m)
	}
}

// clear fills memory with zeros. It uses a kernel, so that it may be part of a chain.
func (d *Device) clear(a address, bytes int) {
	d.launch("fill", grid{blocks(bytes, 16*threads), 1, 1}, a.argument(), driver.Int64(int64(bytes)), driver.Int32(0))
}

// zeroRows copies a row of zeros to all rows of m.
func (d *Device) zeroRows(m tensor.Matrix) {
	row := m.Cols * m.Type.Bytes()
	zeros := d.room(row)
	d.clear(zeros, row)
	from := over(m.Type, m.Rows, m.Cols, zeros)
	from.Stride = 0
	d.convert(m, from)
}

// Combine implements tensor.Rows.
func (d *Device) Combine(y tensor.Matrix, alpha float64, a tensor.Matrix, beta float64, b tensor.Matrix) {
	mustHold("y", y, y.Rows, y.Cols)
	mustHold("a", a, y.Rows, y.Cols)
	if !b.None() {
		mustHold("b", b, y.Rows, y.Cols)
	}
	if !d.begin() {
		return
	}
	defer d.end()
	d.combine(y, alpha, a, beta, b)
}

func (d *Device) combine(y tensor.Matrix, alpha float64, a tensor.Matrix, beta float64, b tensor.Matrix) {
	if folds(y) {
		y, restY := fold(y)
		a, restA := fold(a)
		b, restB := fold(b)
		d.combine(y, alpha, a, beta, b)
		d.combine(restY, alpha, restA, beta, restB)
		return
	}
	d.launch("combine", byRows(y.Rows, y.Cols), at(y), number(int(y.Type)), stride(y), number(y.Rows), number(y.Cols),
		driver.Float32(float32(alpha)), at(a), number(int(a.Type)), stride(a),
		driver.Float32(float32(beta)), at(b), number(int(b.Type)), stride(b))
}

// Apply implements tensor.Rows.
func (d *Device) Apply(y, x tensor.Matrix, e *tensor.Epilogue) {
	mustCompute(y)
	mustBe("x", x, tensor.F32, y.Rows, y.Cols)
	mustFit(e, y)
	if !d.begin() {
		return
	}
	defer d.end()
	d.launchEnding("apply", byRows(y.Rows, y.Cols), d.ending(e, y.Rows), at(y), stride(y), at(x), stride(x), number(y.Rows), number(y.Cols))
}

// ScaleRows implements tensor.Rows.
func (d *Device) ScaleRows(y, x, scale tensor.Matrix) {
	mustCompute(y)
	mustBe("x", x, tensor.F32, y.Rows, y.Cols)
	mustBe("scale", scale, tensor.F32, y.Rows, 1)
	if !d.begin() {
		return
	}
	defer d.end()
	d.launch("scale_rows", byRows(y.Rows, y.Cols), at(y), stride(y), number(y.Rows), number(y.Cols), at(x), stride(x), at(scale), stride(scale))
}

// Max implements tensor.Rows.
func (d *Device) Max(y, which, x tensor.Matrix, index int, first bool) {
	mustCompute(y)
	mustBe("which", which, tensor.I32, y.Rows, y.Cols)
	mustBe("x", x, tensor.F32, y.Rows, y.Cols)
	if !d.begin() {
		return
	}
	defer d.end()
	d.launch("keep_max", byRows(y.Rows, y.Cols), at(y), stride(y), at(which), stride(which), number(y.Rows), number(y.Cols),
		at(x), stride(x), number(index), truth(first))
}

// MaxBack implements tensor.Rows.
func (d *Device) MaxBack(dx, dy, which tensor.Matrix, index int) {
	mustCompute(dx)
	mustBe("dy", dy, tensor.F32, dx.Rows, dx.Cols)
	mustBe("which", which, tensor.I32, dx.Rows, dx.Cols)
	if !d.begin() {
		return
	}
	defer d.end()
	d.launch("keep_max_back", byRows(dx.Rows, dx.Cols), at(dx), stride(dx), number(dx.Rows), number(dx.Cols),
		at(dy), stride(dy), at(which), stride(which), number(index))
}

// Finite implements tensor.Rows.
func (d *Device) Finite(m tensor.Matrix) bool {
	mustCompute(m)
	if !d.begin() {
		return false
	}
	defer d.end()
	d.forget()
	d.odd(m)
	_, _, finite := d.told()
	return finite
}

func (d *Device) odd(m tensor.Matrix) {
	if folds(m) {
		rows, rest := fold(m)
		d.odd(rows)
		d.odd(rest)
		return
	}
	d.launch("odd", byRows(m.Rows, m.Cols), d.answers.odd().argument(), at(m), stride(m), number(m.Rows), number(m.Cols))
}
