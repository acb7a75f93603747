package reference

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// finish applies e to row i, whose elements are in y.
func finish(y []float64, i int, e *tensor.Epilogue) {
	if e == nil {
		return
	}
	if !e.Bias.None() {
		mustBe("bias", e.Bias, 1, len(y))
		for j, b := range read(e.Bias).row(0) {
			y[j] += b
		}
	}
	for j := range y {
		y[j] = activate(y[j], e.Activation)
	}
	if e.Dropout.P == 0 {
		return
	}
	key := rowKey(e.Dropout, i)
	for j := range y {
		y[j] = drop(y[j], key, j, e.Dropout.P)
	}
}

func activate(x float64, a tensor.Activation) float64 {
	switch {
	case a == tensor.ReLU && x <= 0:
		return 0
	case a == tensor.ELU && x < 0:
		return math.Expm1(x)
	}
	return x
}

// slopeOf returns the derivative of an activation, given its output. That of ReLU at 0 is
// 0.
func slopeOf(y float64, a tensor.Activation) float64 {
	switch {
	case a == tensor.ReLU && y <= 0:
		return 0
	case a == tensor.ELU && y < 0:
		return y + 1
	}
	return 1
}

func rowKey(d tensor.Dropout, i int) keyed.Key {
	must(i < len(d.Vertices), "row %d is dropped from and has no vertex among %d", i, len(d.Vertices))
	return d.Key.With(uint64(d.Vertices[i]))
}

// drop returns x after dropout: 0 if it is dropped, whatever x is.
func drop(x float64, row keyed.Key, column int, p float32) float64 {
	if row.Column(uint32(column)) < keyed.Threshold(float64(p)) {
		return 0
	}
	return x * (1 / (1 - float64(p)))
}

// Apply implements tensor.Rows. e may be nil, as everywhere.
func (*Device) Apply(y, x tensor.Matrix, e *tensor.Epilogue) {
	mustBe("y", y, x.Rows, x.Cols)
	from := read(x)
	for i := range y.Rows {
		to := row(y, i)
		copy(to, from.row(i))
		finish(to, i, e)
	}
}

// ApplyBack implements tensor.Rows. It adds to dbias whether or not e still has its bias.
// What was dropped is computed from the key, not from a 0 in y.
func (*Device) ApplyBack(dx, dbias, dy, y tensor.Matrix, e *tensor.Epilogue) {
	mustBe("dx", dx, dy.Rows, dy.Cols)
	mustBe("y", y, dy.Rows, dy.Cols)
	mustBeOrNone("dbias", dbias, 1, dy.Cols)
	if e == nil {
		e = &tensor.Epilogue{}
	}
	stored, from := read(y), read(dy)
	for i := range dx.Rows {
		to, out := row(dx, i), stored.row(i)
		copy(to, from.row(i))
		for j := range to {
			z := out[j]
			if e.Dropout.P != 0 {
				key := rowKey(e.Dropout, i)
				to[j] = drop(to[j], key, j, e.Dropout.P)
				z *= 1 - float64(e.Dropout.P)
			}
			to[j] *= slopeOf(z, e.Activation)
		}
		if !dbias.None() {
			for j, g := range to {
				row(dbias, 0)[j] += g
			}
		}
	}
}
