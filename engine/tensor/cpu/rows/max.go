package rows

import "github.com/hopmesh/hopmesh/engine/tensor"

// Max keeps the larger element and its index.
func Max(y, which, x tensor.Matrix, index int, first bool) {
	if y.Cols == 0 {
		return
	}
	for r := range y.Rows {
		to, from, w := row(y, r), row(x, r), which.I32()[r*which.Stride:][:y.Cols]
		switch {
		case first:
			copy(to, from)
			for i := range w {
				w[i] = int32(index)
			}
		case kernels.max != nil:
			kernels.max(&to[0], &w[0], &from[0], len(to), int32(index))
		default:
			for i, v := range from {
				if v > to[i] {
					to[i], w[i] = v, int32(index)
				}
			}
		}
	}
}

// MaxBack sets dx to dy where which is index, else to 0.
func MaxBack(dx, dy, which tensor.Matrix, index int) {
	if dx.Cols == 0 {
		return
	}
	for r := range dx.Rows {
		to, from, w := row(dx, r), row(dy, r), which.I32()[r*which.Stride:][:dx.Cols]
		if kernels.maxBack != nil {
			kernels.maxBack(&to[0], &from[0], &w[0], len(to), int32(index))
			continue
		}
		for i, v := range from {
			if w[i] != int32(index) {
				v = 0
			}
			to[i] = v
		}
	}
}
