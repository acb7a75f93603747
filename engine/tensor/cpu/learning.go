package cpu

import (
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/rows"
)

// lossOf is the result of a chunk of rows.
type lossOf struct {
	loss  float64
	right int
}

type lossTask struct {
	cut
	dz, z   tensor.Matrix
	labels  []int32
	scale   float64
	binary  bool
	results []lossOf
	scratch []float32
}

func (t *lossTask) Do(chunk, worker int) {
	first, n := t.at(chunk)
	f := rows.CrossEntropy
	if t.binary {
		f = rows.BinaryCrossEntropy
	}
	r := &t.results[chunk]
	r.loss, r.right = f(t.of(t.dz, chunk), t.of(t.z, chunk), t.labels[first:first+n], t.scale, t.scratch[worker*t.cols:][:t.cols])
}

// CrossEntropy implements tensor.Learning.
func (d *Device) CrossEntropy(dz, z tensor.Matrix, labels []int32, scale float64) (loss float64, right int) {
	return d.judge(dz, z, labels, scale, false)
}

// BinaryCrossEntropy implements tensor.Learning.
func (d *Device) BinaryCrossEntropy(dz, z tensor.Matrix, labels []int32, scale float64) (loss float64, right int) {
	return d.judge(dz, z, labels, scale, true)
}

func (d *Device) judge(dz, z tensor.Matrix, labels []int32, scale float64, binary bool) (loss float64, right int) {
	mustCompute(z)
	must(len(labels) == z.Rows, "there are as many labels as rows")
	if !dz.None() {
		mustBe("dz", dz, tensor.F32, z.Rows, z.Cols)
	}
	t := &d.loss
	*t = lossTask{cut: byRows(z.Rows, z.Cols, lossGrain), dz: dz, z: z, labels: labels, scale: scale, binary: binary}
	if t.chunks > len(d.losses) {
		d.losses = make([]lossOf, t.chunks+t.chunks/4)
	}
	if n := d.pool.Size() * z.Cols; n > len(d.scratch) {
		d.scratch = make([]float32, n)
	}
	t.results, t.scratch = d.losses[:t.chunks], d.scratch
	d.run(t.chunks, t)
	for _, r := range t.results {
		loss += r.loss
		right += r.right
	}
	*t = lossTask{}
	return loss, right
}

type adamTask struct {
	cut
	w, g, m, v []float32
	rule       rows.AdamRule
}

func (t *adamTask) Do(chunk, _ int) {
	first, n := t.at(chunk)
	rows.Adam(t.w[first:][:n], t.g[first:][:n], t.m[first:][:n], t.v[first:][:n], &t.rule)
}

// Adam implements tensor.Learning.
func (d *Device) Adam(w, g, m, v tensor.Matrix, o tensor.AdamStep) {
	t := &d.adam
	*t = adamTask{byElements(w), elements("w", w, w), elements("g", g, w), elements("m", m, w), elements("v", v, w), rows.NewAdamRule(o)}
	d.run(t.chunks, t)
	*t = adamTask{}
}

type sgdTask struct {
	cut
	w, g, m               []float32
	rate, momentum, decay float32
}

func (t *sgdTask) Do(chunk, _ int) {
	first, n := t.at(chunk)
	var m []float32
	if t.m != nil {
		m = t.m[first:][:n]
	}
	rows.SGD(t.w[first:][:n], t.g[first:][:n], m, t.rate, t.momentum, t.decay)
}

// SGD implements tensor.Learning.
func (d *Device) SGD(w, g, m tensor.Matrix, o tensor.SGDStep) {
	must(o.Momentum == 0 || !m.None(), "momentum is kept somewhere")
	t := &d.sgd
	*t = sgdTask{
		cut: byElements(w), w: elements("w", w, w), g: elements("g", g, w),
		rate: float32(o.Rate), momentum: float32(o.Momentum), decay: float32(o.Decay),
	}
	if !m.None() {
		t.m = elements("m", m, w)
	}
	d.run(t.chunks, t)
	*t = sgdTask{}
}

// elements returns all elements of a matrix without gaps, which must have the shape of
// another.
func elements(what string, m, like tensor.Matrix) []float32 {
	mustBe(what, m, tensor.F32, like.Rows, like.Cols)
	must(m.Stride == m.Cols || m.Rows <= 1, "what is learnt lies without gaps")
	return m.F32()
}
