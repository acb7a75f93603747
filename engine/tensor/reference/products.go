package reference

import "github.com/hopmesh/hopmesh/engine/tensor"

// MatMul implements tensor.Products. An empty product is 0.
func (*Device) MatMul(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
	left, right := dense(a, shape == tensor.TN), dense(b, shape == tensor.NT)
	inner := a.Cols
	rows, cols := a.Rows, b.Cols
	depth := b.Rows
	switch shape {
	case tensor.TN:
		rows, inner = a.Cols, a.Rows
	case tensor.NT:
		cols, depth = b.Rows, b.Cols
	}
	must(inner == depth, "a product over %d and %d", inner, depth)
	mustBe("c", c, rows, cols)
	for i := range rows {
		to := row(c, i)
		if !add {
			clear(to)
		}
		for k := range inner {
			x := left[i*inner+k]
			for j := range to {
				to[j] += x * right[k*cols+j]
			}
		}
		finish(to, i, e)
	}
}

// dense returns m, or m transposed, without gaps.
func dense(m tensor.Matrix, transposed bool) []float64 {
	d, from := make([]float64, m.Rows*m.Cols), read(m)
	for i := range m.Rows {
		for j, x := range from.row(i) {
			if transposed {
				d[j*m.Rows+i] = x
			} else {
				d[i*m.Cols+j] = x
			}
		}
	}
	return d
}
