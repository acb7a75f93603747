//go:build cuda

package device

import (
	"math"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// The sums of a loss are computed by at most this many blocks.
const (
	mostTallies = 512
	tallyBytes  = 16 // a double and a long long
)

// CrossEntropy implements tensor.Learning.
func (d *Device) CrossEntropy(dz, z tensor.Matrix, labels []int32, scale float64) (loss float64, right int) {
	return d.judge("cross_entropy", dz, z, labels, scale)
}

// BinaryCrossEntropy implements tensor.Learning.
func (d *Device) BinaryCrossEntropy(dz, z tensor.Matrix, labels []int32, scale float64) (loss float64, right int) {
	return d.judge("binary_cross_entropy", dz, z, labels, scale)
}

func (d *Device) judge(name string, dz, z tensor.Matrix, labels []int32, scale float64) (loss float64, right int) {
	mustCompute(z)
	must(len(labels) == z.Rows, "there are as many labels as rows")
	for _, l := range labels {
		must(int(l) < z.Cols, "a label is a column or negative")
	}
	if !dz.None() {
		mustBe("dz", dz, tensor.F32, z.Rows, z.Cols)
	}
	if z.Rows == 0 || z.Cols == 0 || !d.begin() {
		return 0, 0
	}
	defer d.end()
	n := min(mostTallies, blocks(z.Rows, warpsOfBlock))
	tallies := d.room(tallyBytes * n)
	d.forget()
	d.launch(name, grid{n, 1, 1}, tallies.argument(), at(dz), stride(dz), at(z), stride(z), lent(d, labels).argument(),
		number(z.Rows), number(z.Cols), driver.Float32(float32(scale)))
	d.launchOf("add_tallies", grid{1, 1, 1}, 32, d.answers.loss().argument(), tallies.argument(), number(n))
	loss, right, _ = d.told()
	return loss, right
}

// Adam implements tensor.Learning.
func (d *Device) Adam(w, g, m, v tensor.Matrix, o tensor.AdamStep) {
	mustLearn("w", w, w)
	mustLearn("g", g, w)
	mustLearn("m", m, w)
	mustLearn("v", v, w)
	if !d.begin() {
		return
	}
	defer d.end()
	n, step := w.Rows*w.Cols, float64(o.Step)
	d.launch("adam", grid{blocks(n, threads), 1, 1}, at(w), at(g), at(m), at(v), driver.Int64(int64(n)),
		float(o.Rate), float(o.Beta1), float(1-o.Beta1), float(o.Beta2), float(1-o.Beta2), float(o.Epsilon), float(o.Decay), truth(o.Decoupled),
		float(1-math.Pow(o.Beta1, step)), float(1-math.Pow(o.Beta2, step)))
}

// SGD implements tensor.Learning.
func (d *Device) SGD(w, g, m tensor.Matrix, o tensor.SGDStep) {
	must(o.Momentum == 0 || !m.None(), "momentum is kept somewhere")
	mustLearn("w", w, w)
	mustLearn("g", g, w)
	if !m.None() {
		mustLearn("m", m, w)
	}
	if !d.begin() {
		return
	}
	defer d.end()
	n := w.Rows * w.Cols
	d.launch("sgd", grid{blocks(n, threads), 1, 1}, at(w), at(g), at(m), driver.Int64(int64(n)), float(o.Rate), float(o.Momentum), float(o.Decay))
}

// mustLearn checks that m is without gaps and has the shape of another matrix.
func mustLearn(what string, m, like tensor.Matrix) {
	mustBe(what, m, tensor.F32, like.Rows, like.Cols)
	must(m.Stride == m.Cols || m.Rows <= 1, "what is learnt lies without gaps")
}

func float(x float64) driver.Argument { return driver.Float32(float32(x)) }
