package rows

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// ApplyBack computes the gradient of e for n rows from row first: dx from dy and y, the
// output of e. The sums of dx's columns are added to sums, if that is not nil. dx may be
// dy.
func ApplyBack(dx tensor.Matrix, sums []float32, dy, y tensor.Matrix, first, n int, e *tensor.Epilogue) {
	if n == 0 || dx.Cols == 0 {
		return
	}
	act := tensor.Linear
	d := drop{scale: 1, unscale: 1}
	if e != nil {
		act, d = e.Activation, dropping(e.Dropout, first, n)
	}
	dx, dy = dx.RowRange(first, n), dy.RowRange(first, n)
	y = y.RowRange(first, n)
	k := kernels.back[act][is(d.vertices != nil)][is(sums != nil)]
	if k == nil {
		backInGo(dx, sums, dy, y, act, &d)
		return
	}
	k(at(dx), at(dy), (*float32)(y.Base()), 4*dx.Stride, 4*dy.Stride, 4*y.Stride, dx.Rows, dx.Cols, unsafe.SliceData(sums),
		unsafe.SliceData(d.vertices), uint64(d.key), d.threshold, d.scale, d.unscale)
}

func backInGo(dx tensor.Matrix, sums []float32, dy, y tensor.Matrix, act tensor.Activation, d *drop) {
	for r := range dx.Rows {
		to, from := row(dx, r), row(dy, r)
		if d.vertices != nil {
			dropRow(to, from, d.key.With(uint64(d.vertices[r])), d)
			from = to
		}
		switch act {
		case tensor.ReLU:
			for i, v := range row(y, r) {
				if v > 0 {
					to[i] = from[i]
				} else {
					to[i] = 0
				}
			}
		case tensor.ELU:
			for i, v := range row(y, r) {
				if v > 0 {
					to[i] = from[i]
				} else {
					to[i] = from[i] * (v*d.unscale + 1)
				}
			}
		default:
			copy(to, from)
		}
		if sums != nil {
			addRow(sums, to)
		}
	}
}
