package rows

import (
	"math"
	"slices"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// CrossEntropy returns the sum of the losses of z's labelled rows, and how many of them
// are predicted correctly. dz, if not empty, is set to the gradient of scale times that
// sum; it may be z. scratch is as long as a row.
func CrossEntropy(dz, z tensor.Matrix, labels []int32, scale float64, scratch []float32) (loss float64, right int) {
	for r, label := range labels[:z.Rows] {
		var to []float32
		if dz.None() {
			to = scratch[:z.Cols]
		} else {
			to = row(dz, r)
		}
		if label < 0 {
			clear(to)
			continue
		}
		from := row(z, r)
		most, own := maxRow(from), from[label]
		if isFirst(from, int(label), most) {
			right++
		}
		expRow(to, from, most)
		// The label's own term stays out of the sum, so that its gradient and a loss near
		// 0 keep all digits.
		mine := to[label]
		to[label] = 0
		others := sumRow(to)
		total := others + mine
		if own == most {
			loss += math.Log1p(float64(others))
		} else {
			loss += math.Log(float64(total)) + float64(most) - float64(own)
		}
		if !dz.None() {
			by := float32(scale / float64(total))
			scaleRow(to, to, by)
			to[label] = -others * by
		}
	}
	return loss, right
}

// BinaryCrossEntropy is CrossEntropy with one binary label per column.
func BinaryCrossEntropy(dz, z tensor.Matrix, labels []int32, scale float64, scratch []float32) (loss float64, right int) {
	for r, label := range labels[:z.Rows] {
		var to []float32
		if dz.None() {
			to = scratch[:z.Cols]
		} else {
			to = row(dz, r)
		}
		if label < 0 {
			clear(to)
			continue
		}
		from := row(z, r)
		own := from[label]
		if isFirst(from, int(label), maxRow(from)) {
			right++
		}
		// A positive label is a negative one for the opposite logit.
		by := float32(scale)
		loss += float64(binaryRow(to[:label], from[:label], by))
		loss += float64(binaryRow(to[label+1:], from[label+1:], by))
		mine, gradient := binaryOf(-own)
		loss += float64(mine)
		to[label] = -gradient * by
	}
	return loss, right
}

// isFirst reports whether x[i] equals most and no element before it does.
func isFirst(x []float32, i int, most float32) bool {
	return x[i] == most && !slices.Contains(x[:i], most)
}

func maxRow(x []float32) float32 {
	if kernels.largest != nil {
		return kernels.largest(&x[0], len(x))
	}
	most := x[0]
	for _, v := range x {
		most = max(most, v)
	}
	return most
}

// expRow computes y = exp(x-most).
func expRow(y, x []float32, most float32) {
	if kernels.exp != nil {
		kernels.exp(unsafe.SliceData(y[:len(x)]), unsafe.SliceData(x), len(x), most)
		return
	}
	for i, v := range x {
		y[i] = expOf(v - most)
	}
}

// binaryOf returns log(1+exp(x)), the loss of a negative label, and its derivative.
func binaryOf(x float32) (loss, gradient float32) {
	t := expOf(-abs(x))
	loss, gradient = float32(math.Log1p(float64(t))), 1/(1+t)
	if x > 0 {
		return loss + x, gradient
	}
	return loss, gradient * t
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// binaryRow returns the loss of a row of negative labels; y is set to by times the
// derivatives.
func binaryRow(y, x []float32, by float32) float32 {
	if kernels.binary != nil {
		return kernels.binary(unsafe.SliceData(y[:len(x)]), unsafe.SliceData(x), len(x), by)
	}
	var lanes [16]float32
	for i, v := range x {
		loss, gradient := binaryOf(v)
		lanes[i&15] += loss
		y[i] = gradient * by
	}
	return tree(&lanes)
}
