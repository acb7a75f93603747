package rows

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Combine computes y = alpha*a + beta*b; b may be empty. y may be a or b.
func Combine(y tensor.Matrix, alpha float64, a tensor.Matrix, beta float64, b tensor.Matrix) {
	switch {
	case b.None() && alpha == 1 && convertFast(y, a):
	case y.Type == tensor.F32 && a.Type == tensor.F32 && b.None():
		for r := range y.Rows {
			scaleRow(row(y, r), row(a, r), float32(alpha))
		}
	case y.Type == tensor.F32 && a.Type == tensor.F32 && b.Type == tensor.F32:
		for r := range y.Rows {
			combineRow(row(y, r), row(a, r), row(b, r), float32(alpha), float32(beta))
		}
	default:
		convert(y, alpha, a, beta, b)
	}
}

// convertFast computes y = a by copying or with kernels. It reports whether it could.
func convertFast(y, a tensor.Matrix) bool {
	switch {
	case y.Type == a.Type:
		for r := range y.Rows {
			copy(bytesOf(y, r), bytesOf(a, r))
		}
	case kernels.add == nil:
		return false
	case y.Type == tensor.F32 && a.Type == tensor.BF16:
		for r := range y.Rows {
			to, from := row(y, r), (*byte)(unsafe.Pointer(&a.BF16()[r*a.Stride]))
			copyRows(&to[0], 0, &from, &from, 1, len(to), 0, true)
		}
	case y.Type == tensor.BF16 && a.Type == tensor.F32:
		for r := range y.Rows {
			to, from := y.BF16()[r*y.Stride:][:y.Cols], row(a, r)
			if whole := len(to) &^ 15; whole > 0 {
				kernels.narrow(&to[0], &from[0], whole)
			}
			for i := len(to) &^ 15; i < len(to); i++ {
				to[i] = toBF16(from[i])
			}
		}
	default:
		return false
	}
	return true
}

// bytesOf returns a row of a matrix of any type as bytes.
func bytesOf(m tensor.Matrix, r int) []byte {
	size := m.Type.Bytes()
	return unsafe.Slice((*byte)(unsafe.Add(m.Base(), r*m.Stride*size)), m.Cols*size)
}

// convert is Combine of any types, in float64.
func convert(y tensor.Matrix, alpha float64, a tensor.Matrix, beta float64, b tensor.Matrix) {
	var x, z [256]float64
	for r := range y.Rows {
		for c := 0; c < y.Cols; c += len(x) {
			x, z := x[:min(len(x), y.Cols-c)], z[:]
			load(x, a, r, c)
			for i := range x {
				x[i] *= alpha
			}
			if !b.None() {
				load(z[:len(x)], b, r, c)
				for i := range x {
					x[i] += beta * z[i]
				}
			}
			store(y, r, c, x)
		}
	}
}

// Zero sets y to 0.
func Zero(y tensor.Matrix) {
	for r := range y.Rows {
		clear(bytesOf(y, r))
	}
}

// ScaleRows computes y[i] = scale[i] * x[i]. y may be x.
func ScaleRows(y, x, scale tensor.Matrix) {
	by := scale.F32()
	if y.Cols == 1 && y.Stride == 1 && x.Stride == 1 && scale.Stride == 1 { // a product of elements
		to, from := y.F32(), x.F32()
		for r, s := range by {
			to[r] = s * from[r]
		}
		return
	}
	for r := range y.Rows {
		scaleRow(row(y, r), row(x, r), by[r*scale.Stride])
	}
}

func addRow(y, x []float32) {
	if kernels.add != nil {
		kernels.add(unsafe.SliceData(y[:len(x)]), unsafe.SliceData(x), len(x))
		return
	}
	for i, v := range x {
		y[i] += v
	}
}

func scaleRow(y, x []float32, by float32) {
	if by == 1 {
		copy(y, x)
		return
	}
	if kernels.scale != nil {
		kernels.scale(unsafe.SliceData(y[:len(x)]), unsafe.SliceData(x), len(x), by)
		return
	}
	for i, v := range x {
		y[i] = by * v
	}
}

func combineRow(y, a, b []float32, alpha, beta float32) {
	if kernels.combine != nil {
		kernels.combine(unsafe.SliceData(y[:len(a)]), unsafe.SliceData(a), unsafe.SliceData(b[:len(a)]), len(a), alpha, beta)
		return
	}
	for i, v := range a {
		y[i] = alpha*v + beta*b[i]
	}
}

// narrow rows are added up by columns, so that sums stay in registers. Both methods give
// the same bits.
const narrow = 64

// ColumnSums adds the sums of x's columns to sums.
func ColumnSums(sums []float32, x tensor.Matrix) {
	if kernels.addUp != nil && x.Cols <= narrow && x.Rows > 0 && x.Cols > 0 {
		kernels.addUp(&sums[0], at(x), 4*x.Stride, x.Rows, x.Cols)
		return
	}
	for r := range x.Rows {
		addRow(sums, row(x, r))
	}
}

// Finite reports whether all elements are finite.
func Finite(x tensor.Matrix) bool {
	for r := range x.Rows {
		switch x.Type {
		case tensor.F32:
			if !finiteRow(row(x, r)) {
				return false
			}
		case tensor.F64:
			for _, v := range x.F64()[r*x.Stride:][:x.Cols] {
				if v-v != 0 {
					return false
				}
			}
		case tensor.BF16:
			for _, v := range x.BF16()[r*x.Stride:][:x.Cols] {
				if v>>7&0xff == 0xff {
					return false
				}
			}
		}
	}
	return true
}

func finiteRow(x []float32) bool {
	if kernels.finite != nil {
		return kernels.finite(unsafe.SliceData(x), len(x))
	}
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// AddPartials adds the sums of chunks to sums, in a tree that depends only on their
// number. It overwrites partial.
func AddPartials(sums tensor.Matrix, partial []float32, stride, chunks int) {
	if chunks == 0 || sums.Cols == 0 {
		return
	}
	for step := 1; step < chunks; step *= 2 {
		for i := 0; i+step < chunks; i += 2 * step {
			addRow(partial[i*stride:][:sums.Cols], partial[(i+step)*stride:][:sums.Cols])
		}
	}
	addRow(row(sums, 0), partial[:sums.Cols])
}
