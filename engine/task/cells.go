package task

import (
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A cellLoss returns the loss of one output where a target is known, and its derivative.
type cellLoss func(y, target float64) (loss, slope float64)

// cells are targets with columns, each of which has a loss by itself, in float64 and on the
// processor: outputs are few beside what layers compute. The loss of a row is the sum over its
// columns by their number. A missing target adds nothing, so the same target weighs the same
// whatever else is missing.
type cells struct {
	Spec
	loss      cellLoss
	out, back []float64
}

// Words implements Task.
func (c *cells) Words() int { return c.Width }

// OnProcessor implements Task.
func (*cells) OnProcessor() bool { return true }

// Loss implements Task.
func (c *cells) Loss(device tensor.Device, dz, z tensor.Matrix, targets []int32, scale float64) (sum float64) {
	n := z.Rows * z.Cols
	c.out, c.back = slices.Grow(c.out[:0], n)[:n], slices.Grow(c.back[:0], n)[:n]
	device.Read(c.out, z)
	each := 1 / float64(z.Cols)
	for row := range z.Rows {
		loss := 0.0
		for i := row * z.Cols; i < (row+1)*z.Cols; i++ {
			target := number(targets[i])
			if c.back[i] = 0; math.IsNaN(target) {
				continue
			}
			of, slope := c.loss(c.out[i], target)
			if c.Weights != nil && target > 0 {
				weight := c.Weights[i%z.Cols]
				of, slope = of*weight, slope*weight
			}
			loss += of
			c.back[i] = slope * each * scale
		}
		sum += loss * each
	}
	if !dz.None() {
		device.Write(dz, c.back)
	}
	return sum
}

// number returns the target of a word: NaN if it is missing.
func number(word int32) float64 {
	if word == graph.NoLabel {
		return math.NaN()
	}
	return float64(math.Float32frombits(uint32(word)))
}
