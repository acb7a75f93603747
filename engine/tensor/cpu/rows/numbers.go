package rows

import (
	"math"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// toBF16 rounds to the nearest, ties to even.
func toBF16(x float32) uint16 {
	u := math.Float32bits(x)
	if x != x {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

func fromBF16(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }

// load reads len(to) elements of a row, starting at this column.
func load(to []float64, m tensor.Matrix, row, col int) {
	at := row*m.Stride + col
	switch m.Type {
	case tensor.F32:
		for i, v := range m.F32()[at:][:len(to)] {
			to[i] = float64(v)
		}
	case tensor.F64:
		copy(to, m.F64()[at:])
	case tensor.BF16:
		for i, v := range m.BF16()[at:][:len(to)] {
			to[i] = float64(fromBF16(v))
		}
	default:
		for i, v := range m.I32()[at:][:len(to)] {
			to[i] = float64(v)
		}
	}
}

// store is the inverse of load.
func store(m tensor.Matrix, row, col int, from []float64) {
	at := row*m.Stride + col
	switch m.Type {
	case tensor.F32:
		for i, to := 0, m.F32()[at:][:len(from)]; i < len(to); i++ {
			to[i] = float32(from[i])
		}
	case tensor.F64:
		copy(m.F64()[at:], from)
	case tensor.BF16:
		for i, to := 0, m.BF16()[at:][:len(from)]; i < len(to); i++ {
			to[i] = toBF16(float32(from[i]))
		}
	default:
		for i, to := 0, m.I32()[at:][:len(from)]; i < len(to); i++ {
			to[i] = int32(from[i])
		}
	}
}

// row returns a row of a matrix that the caller knows is F32.
func row(m tensor.Matrix, r int) []float32 {
	if m.Cols == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Add(m.Base(), 4*r*m.Stride)), m.Cols)
}
