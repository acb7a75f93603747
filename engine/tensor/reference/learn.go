package reference

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// CrossEntropy implements tensor.Learning. A row is correct if the first of its largest
// logits is its label.
func (*Device) CrossEntropy(dz, z tensor.Matrix, labels []int32, scale float64) (loss float64, right int) {
	return judge(dz, z, labels, func(logits, grad []float64, label int) float64 {
		largest, sum := math.Inf(-1), 0.0
		for _, v := range logits {
			largest = max(largest, v)
		}
		for _, v := range logits {
			sum += math.Exp(v - largest)
		}
		loss := math.Log(sum) + largest - logits[label]
		for j, v := range logits {
			grad[j] = scale * math.Exp(v-largest) / sum
		}
		grad[label] -= scale
		return loss
	})
}

// BinaryCrossEntropy implements tensor.Learning. A row is correct by the same rule as
// with CrossEntropy.
func (*Device) BinaryCrossEntropy(dz, z tensor.Matrix, labels []int32, scale float64) (loss float64, right int) {
	return judge(dz, z, labels, func(logits, grad []float64, label int) float64 {
		loss := 0.0
		for j, v := range logits {
			small := math.Exp(-math.Abs(v))
			loss += max(v, 0) + math.Log1p(small)
			yes := 1 / (1 + small)
			if v < 0 {
				yes = small / (1 + small)
			}
			grad[j] = scale * yes
		}
		grad[label] -= scale
		return loss - logits[label]
	})
}

// judge adds up the rows' losses and stores their gradients. A label at or above Cols is
// a bug of the caller.
func judge(dz, z tensor.Matrix, labels []int32, row func(logits, grad []float64, label int) float64) (loss float64, right int) {
	must(len(labels) == z.Rows, "%d labels for %d rows", len(labels), z.Rows)
	mustBeOrNone("dz", dz, z.Rows, z.Cols)
	from, grad := read(z), make([]float64, z.Cols)
	for i, label := range labels {
		clear(grad)
		if label >= 0 {
			must(int(label) < z.Cols, "label %d of %d classes", label, z.Cols)
			logits := from.row(i)
			loss += row(logits, grad, int(label))
			if first(logits) == int(label) {
				right++
			}
		}
		if !dz.None() {
			store(dz, i, grad)
		}
	}
	return loss, right
}

// first returns the index of the first of the largest logits.
func first(logits []float64) int {
	best := 0
	for j, v := range logits {
		if v > logits[best] {
			best = j
		}
	}
	return best
}

// Adam implements tensor.Learning: w -= Rate * m' / (sqrt(v')+Epsilon), where m' and v'
// are the moments divided by 1 - Beta^Step. Decoupled decay subtracts Rate*Decay times
// the old weight.
func (*Device) Adam(w, g, m, v tensor.Matrix, o tensor.AdamStep) {
	mustBe("g", g, w.Rows, w.Cols)
	mustBe("m", m, w.Rows, w.Cols)
	mustBe("v", v, w.Rows, w.Cols)
	grad := read(g)
	correct1 := 1 - math.Pow(o.Beta1, float64(o.Step))
	correct2 := 1 - math.Pow(o.Beta2, float64(o.Step))
	for i := range w.Rows {
		ws, ms, vs := row(w, i), row(m, i), row(v, i)
		for j, x := range grad.row(i) {
			before := ws[j]
			if !o.Decoupled {
				x += o.Decay * before
			}
			ms[j] = o.Beta1*ms[j] + (1-o.Beta1)*x
			vs[j] = o.Beta2*vs[j] + (1-o.Beta2)*x*x
			ws[j] -= o.Rate * (ms[j] / correct1) / (math.Sqrt(vs[j]/correct2) + o.Epsilon)
			if o.Decoupled {
				ws[j] -= o.Rate * o.Decay * before
			}
		}
	}
}

// SGD implements tensor.Learning. A given m is written even if Momentum is 0, but then
// its old values are ignored.
func (*Device) SGD(w, g, m tensor.Matrix, o tensor.SGDStep) {
	mustBe("g", g, w.Rows, w.Cols)
	mustBeOrNone("m", m, w.Rows, w.Cols)
	must(o.Momentum == 0 || !m.None(), "momentum and nowhere to keep it")
	grad := read(g)
	for i := range w.Rows {
		ws := row(w, i)
		for j, x := range grad.row(i) {
			x += o.Decay * ws[j]
			if o.Momentum != 0 {
				x += o.Momentum * row(m, i)[j]
			}
			if !m.None() {
				row(m, i)[j] = x
			}
			ws[j] -= o.Rate * x
		}
	}
}
