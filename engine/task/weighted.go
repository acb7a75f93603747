package task

import (
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// weighted are classes whose losses have weights, computed in float64 on the processor.
type weighted struct {
	classes
	out, back []float64
}

// OnProcessor implements Task.
func (*weighted) OnProcessor() bool { return true }

// Loss implements Task.
func (w *weighted) Loss(device tensor.Device, dz, z tensor.Matrix, targets []int32, scale float64) (sum float64) {
	n := z.Rows * z.Cols
	w.out, w.back = slices.Grow(w.out[:0], n)[:n], slices.Grow(w.back[:0], n)[:n]
	device.Read(w.out, z)
	clear(w.back)
	of := softmaxOf
	if w.Spec.Loss == BCE {
		of = binaryOf
	}
	for row, label := range targets[:z.Rows] {
		if label < 0 {
			continue
		}
		back, weight := w.back[row*z.Cols:][:z.Cols], w.Weights[label]
		sum += weight * of(back, w.out[row*z.Cols:][:z.Cols], int(label))
		for c := range back {
			back[c] *= weight * scale
		}
	}
	if !dz.None() {
		device.Write(dz, w.back)
	}
	return sum
}

// softmaxOf returns the cross-entropy of a row, and its gradient.
func softmaxOf(back, row []float64, label int) float64 {
	most, total := slices.Max(row), 0.0
	for c, z := range row {
		back[c] = math.Exp(z - most)
		total += back[c]
	}
	for c := range back {
		back[c] /= total
	}
	back[label]--
	return math.Log(total) + most - row[label]
}

// binaryOf returns the sum of the binary cross-entropies of a row, and its gradient.
func binaryOf(back, row []float64, label int) (loss float64) {
	for c, z := range row {
		target := 0.0
		if c == label {
			target = 1
		}
		of, slope := binary(z, target)
		loss, back[c] = loss+of, slope
	}
	return loss
}
