package reference

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A reader reads the rows of a matrix of any type as float64.
type reader struct {
	m       tensor.Matrix
	f64     []float64
	convert []float64 // one converted row
}

func read(m tensor.Matrix) *reader {
	if m.Type == tensor.F64 {
		return &reader{m: m, f64: m.F64()}
	}
	return &reader{m: m, convert: make([]float64, m.Cols)}
}

// row returns a row, which is valid until the next call.
func (r *reader) row(i int) []float64 {
	if r.m.Cols == 0 {
		return nil
	}
	start := i * r.m.Stride
	switch r.m.Type {
	case tensor.F64:
		return r.f64[start:][:r.m.Cols]
	case tensor.F32:
		for j, x := range r.m.F32()[start:][:r.m.Cols] {
			r.convert[j] = float64(x)
		}
	case tensor.BF16:
		for j, x := range r.m.BF16()[start:][:r.m.Cols] {
			r.convert[j] = float64(math.Float32frombits(uint32(x) << 16))
		}
	case tensor.I32:
		for j, x := range r.m.I32()[start:][:r.m.Cols] {
			r.convert[j] = float64(x)
		}
	}
	return r.convert
}

// row returns row i of an F64 matrix, for reading and writing.
func row(m tensor.Matrix, i int) []float64 {
	if m.Cols == 0 {
		return nil
	}
	return m.F64()[i*m.Stride:][:m.Cols]
}

// chosen returns row i of an I32 matrix.
func chosen(m tensor.Matrix, i int) []int32 {
	if m.Cols == 0 {
		return nil
	}
	return m.I32()[i*m.Stride:][:m.Cols]
}

// store writes row i of a matrix of any type.
func store(m tensor.Matrix, i int, from []float64) {
	if m.Cols == 0 {
		return
	}
	start := i * m.Stride
	switch m.Type {
	case tensor.F64:
		copy(m.F64()[start:][:m.Cols], from)
	case tensor.F32:
		to := m.F32()[start:][:m.Cols]
		for j := range to {
			to[j] = float32(from[j])
		}
	case tensor.BF16:
		to := m.BF16()[start:][:m.Cols]
		for j := range to {
			to[j] = toBF16(float32(from[j]))
		}
	case tensor.I32:
		to := m.I32()[start:][:m.Cols]
		for j := range to {
			to[j] = int32(from[j])
		}
	}
}

// toBF16 rounds to the nearest, ties to even. NaN stays NaN.
func toBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 1<<6
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
