//go:build cuda

package device

import (
	"math"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Write implements tensor.Device.
func (d *Device) Write(m tensor.Matrix, from []float64) { write(d, m, from) }

// Write32 implements tensor.Device.
func (d *Device) Write32(m tensor.Matrix, from []float32) { write(d, m, from) }

// Read implements tensor.Device.
func (d *Device) Read(to []float64, m tensor.Matrix) { read(d, to, m) }

// Read32 implements tensor.Device.
func (d *Device) Read32(to []float32, m tensor.Matrix) { read(d, to, m) }

func write[T float32 | float64](d *Device, m tensor.Matrix, from []T) {
	must(len(from) == m.Rows*m.Cols, "as many numbers are written as the matrix has elements")
	if len(from) == 0 || !d.begin() {
		return
	}
	defer d.end()
	rows := together(m)
	room := d.besides(m, rows)
	for r := 0; r < m.Rows; r += rows {
		part := m.RowRange(r, min(rows, m.Rows-r))
		dense := addressOf(part)
		if room != 0 {
			dense = room
		}
		sendNumbers(d, dense, m.Type, from[r*m.Cols:][:part.Rows*m.Cols])
		if room != 0 {
			d.convert(part, over(m.Type, part.Rows, m.Cols, room))
		}
	}
}

func read[T float32 | float64](d *Device, to []T, m tensor.Matrix) {
	must(len(to) == m.Rows*m.Cols, "as many numbers are read as the matrix has elements")
	if len(to) == 0 || !d.begin() {
		return
	}
	defer d.end()
	rows := together(m)
	room := d.besides(m, rows)
	for r := 0; r < m.Rows; r += rows {
		part := m.RowRange(r, min(rows, m.Rows-r))
		dense := addressOf(part)
		if room != 0 {
			dense = room
			d.convert(over(m.Type, part.Rows, m.Cols, room), part)
		}
		fetchNumbers(d, to[r*m.Cols:][:part.Rows*m.Cols], dense, m.Type)
	}
}

// together returns how many rows are copied at once: all, if they have no gaps. Rows with
// gaps are first packed by a kernel, except those of I32: kernels treat numbers as
// floats, and some NaNs do not keep their bits.
func together(m tensor.Matrix) int {
	switch {
	case m.Stride == m.Cols || m.Rows == 1:
		return m.Rows
	case m.Type == tensor.I32:
		return 1
	}
	return max(1, segmentBytes/(m.Cols*m.Type.Bytes()))
}

// besides returns room for packing that many rows of m, or 0 if none is needed.
func (d *Device) besides(m tensor.Matrix, rows int) address {
	if m.Stride == m.Cols || rows == 1 {
		return 0
	}
	return d.room(rows * m.Cols * m.Type.Bytes())
}

// convert sets y to x, which may have another type.
func (d *Device) convert(y, x tensor.Matrix) { d.combine(y, 1, x, 0, tensor.Matrix{}) }

func sendNumbers[T float32 | float64](d *Device, to address, t tensor.Type, from []T) {
	if same, is := any(from).([]float32); is && t == tensor.F32 {
		d.send(to, bytesOf(same))
		return
	}
	for len(from) > 0 && d.err == nil {
		n := min(len(from), segmentBytes/t.Bytes())
		p := d.pinned(n * t.Bytes())
		if p.Len() == 0 {
			return
		}
		switch t {
		case tensor.F32:
			for i, to := 0, driver.Numbers[float32](p); i < n; i++ {
				to[i] = float32(from[i])
			}
		case tensor.BF16:
			for i, to := 0, driver.Numbers[uint16](p); i < n; i++ {
				to[i] = toBF16(float32(from[i]))
			}
		case tensor.I32:
			for i, to := 0, driver.Numbers[int32](p); i < n; i++ {
				to[i] = int32(from[i])
			}
		default:
			panic("device: a GPU has no matrices of " + t.String())
		}
		d.hand(to, p)
		to, from = to.plus(p.Len()), from[n:]
	}
}

func fetchNumbers[T float32 | float64](d *Device, to []T, from address, t tensor.Type) {
	for len(to) > 0 {
		n := min(len(to), segmentBytes/t.Bytes())
		p := d.fetch(from, n*t.Bytes())
		if p.Len() == 0 {
			return
		}
		switch t {
		case tensor.F32:
			for i, x := range driver.Numbers[float32](p) {
				to[i] = T(x)
			}
		case tensor.BF16:
			for i, x := range driver.Numbers[uint16](p) {
				to[i] = T(math.Float32frombits(uint32(x) << 16))
			}
		case tensor.I32:
			for i, x := range driver.Numbers[int32](p) {
				to[i] = T(x)
			}
		default:
			panic("device: a GPU has no matrices of " + t.String())
		}
		to, from = to[n:], from.plus(p.Len())
	}
}

// toBF16 rounds to the nearest even; NaN stays NaN.
func toBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
