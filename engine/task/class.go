package task

import (
	"github.com/hopmesh/hopmesh/engine/metric"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// The losses and metrics of classes.
const (
	Softmax = "softmax"
	BCE     = "bce"

	Accuracy = "accuracy"
	MacroF1  = "macro_f1"
	ROCAUC   = "roc_auc"
)

// class is the task of one class for each vertex. Its word is the class.
var class = Kind{
	Name: "class",
	Losses: []Loss{
		{Softmax, "probability = exp(y) / the sum of exp(y) over the row (softmax)."},
		{BCE, "probability = 1 / (1 + exp(-y)) of each class (logistic function)."},
	},
	Metrics:  []Metric{{Name: Accuracy}, {Name: MacroF1}, {Name: ROCAUC, Ranked: true}},
	Column:   "class",
	Scores:   "the scores of the classes",
	Accuracy: true,
	Ranks: func(target []int32, column int) int {
		switch {
		case target[0] < 0:
			return metric.Unknown
		case int(target[0]) == column:
			return metric.With
		}
		return metric.Without
	},
	Exclusive: true,
	Weighted:  true,
	make: func(s Spec) Task {
		if s.Weights != nil {
			return &weighted{classes: classes{s}}
		}
		return classes{s}
	},
}

// classes implements Task.
type classes struct{ Spec }

// Words implements Task.
func (classes) Words() int { return 1 }

// OnProcessor implements Task.
func (classes) OnProcessor() bool { return false }

// Loss implements Task.
func (c classes) Loss(device tensor.Device, dz, z tensor.Matrix, targets []int32, scale float64) (sum float64) {
	if c.Spec.Loss == BCE {
		sum, _ = device.BinaryCrossEntropy(dz, z, targets, scale)
	} else {
		sum, _ = device.CrossEntropy(dz, z, targets, scale)
	}
	return sum
}

// Meter implements Task.
func (c classes) Meter() Meter { return hits{metric.New(c.Width)} }

// hits is a Meter. It has whole numbers only, so it needs not know of shards.
type hits struct{ *metric.Scorer }

// Reset implements Meter.
func (h hits) Reset(int) { h.Scorer.Reset() }

// Add implements Meter.
func (h hits) Add(_ int, output []float32, target []int32) { h.Scorer.Add(output, target[0]) }

// Exported implements Meter.
func (h hits) Exported(int) int { return h.Scorer.Exported() }

// Export implements Meter.
func (h hits) Export(to []byte, _ []int) []byte { return h.Scorer.Export(to) }

// Merge implements Meter.
func (h hits) Merge(from []byte, _ []int, most int) error { return h.Scorer.Merge(from, most) }

// Count implements Meter.
func (h hits) Count() int { return h.Scores().Count }

// Values implements Meter.
func (h hits) Values(to map[string]float64) {
	s := h.Scores()
	to[Accuracy], to[MacroF1] = s.Accuracy, s.MacroF1
}
