package rows

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Finish applies the epilogue in place to n rows of y, which is F32, from row first.
// Kernels call it while rows are still in the cache.
func Finish(y tensor.Matrix, first, n int, e *tensor.Epilogue) {
	if e == nil || n == 0 || y.Cols == 0 {
		return
	}
	if e.Bias.None() && e.Activation == tensor.Linear && e.Dropout.P <= 0 {
		return
	}
	v := y.RowRange(first, n)
	finish(v, v, first, e)
}

// Apply computes y = e(x) for n rows from row first. y may be x.
func Apply(y, x tensor.Matrix, first, n int, e *tensor.Epilogue) {
	if n == 0 || y.Cols == 0 {
		return
	}
	finish(y.RowRange(first, n), x.RowRange(first, n), first, e)
}

// A drop is a tensor.Dropout prepared for rows of elements.
type drop struct {
	key       keyed.Key
	vertices  []uint32 // of these rows; nil: no dropout
	threshold uint32
	scale     float32 // factor of kept elements
	unscale   float32 // its inverse
}

func dropping(d tensor.Dropout, first, n int) drop {
	if d.P <= 0 {
		return drop{scale: 1, unscale: 1}
	}
	r := drop{key: d.Key, vertices: d.Vertices[first : first+n], threshold: keyed.Threshold(float64(d.P))}
	if d.P < 1 {
		r.scale, r.unscale = float32(1/(1-float64(d.P))), float32(1-float64(d.P))
	}
	return r
}

func finish(y, x tensor.Matrix, first int, e *tensor.Epilogue) {
	var bias []float32
	act := tensor.Linear
	d := drop{scale: 1, unscale: 1}
	if e != nil {
		act, d = e.Activation, dropping(e.Dropout, first, y.Rows)
		if !e.Bias.None() {
			bias = row(e.Bias, 0)
		}
	}
	k := kernels.finish[act][is(bias != nil)][is(d.vertices != nil)]
	if k == nil {
		finishInGo(y, x, bias, act, &d)
		return
	}
	k(at(y), at(x), 4*y.Stride, 4*x.Stride, y.Rows, y.Cols, unsafe.SliceData(bias), unsafe.SliceData(d.vertices), uint64(d.key), d.threshold, d.scale)
}

// is returns 1 for true, else 0.
func is(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// at returns the start of a matrix that the caller knows is F32.
func at(m tensor.Matrix) *float32 { return (*float32)(m.Base()) }

func finishInGo(y, x tensor.Matrix, bias []float32, act tensor.Activation, d *drop) {
	for r := range y.Rows {
		to, from := row(y, r), row(x, r)
		if bias != nil {
			for i, v := range from {
				to[i] = v + bias[i]
			}
			from = to
		}
		switch act {
		case tensor.ReLU:
			for i, v := range from {
				to[i] = max(v, 0)
			}
		case tensor.ELU:
			for i, v := range from {
				to[i] = eluOf(v)
			}
		default:
			copy(to, from)
		}
		if d.vertices != nil {
			dropRow(to, to, d.key.With(uint64(d.vertices[r])), d)
		}
	}
}

// dropRow applies dropout to a row with this key.
func dropRow(to, from []float32, key keyed.Key, d *drop) {
	for i, v := range from {
		if key.Column(uint32(i)) < d.threshold {
			v = 0
		} else {
			v *= d.scale
		}
		to[i] = v
	}
}
