package task

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/metric"
)

// The metrics of a yes or no in each of several columns.
const (
	MicroF1          = "micro_f1"
	AveragePrecision = "average_precision"
)

// multiLabel is the task of a yes or no in each of several columns. A word is the bits of 0 or 1.
var multiLabel = Kind{
	Name:     "multilabel",
	Targets:  graph.YesOrNo,
	Losses:   []Loss{{BCE, "probability = 1 / (1 + exp(-y)) of each column (logistic function)."}},
	Metrics:  []Metric{{Name: MicroF1}, {Name: MacroF1}, {Name: ROCAUC, Ranked: true}, {Name: AveragePrecision, Ranked: true}},
	Column:   "label",
	Scores:   "the score of each label",
	Ranks:    sideOf,
	Always:   true,
	Weighted: true,
	make:     func(s Spec) Task { return labels{&cells{Spec: s, loss: binary}} },
}

// sideOf reports whether a column is yes.
func sideOf(target []int32, column int) int {
	switch x := number(target[column]); {
	case math.IsNaN(x):
		return metric.Unknown
	case x > 0:
		return metric.With
	}
	return metric.Without
}

// binary is the cross-entropy of a logit.
func binary(y, target float64) (loss, slope float64) {
	small := math.Exp(-math.Abs(y)) // at most 1
	probability := 1 / (1 + small)
	if y < 0 {
		probability = small / (1 + small)
	}
	return math.Max(y, 0) - y*target + math.Log1p(small), probability - target
}

// labels implements Task.
type labels struct{ *cells }

// Meter implements Task.
func (l labels) Meter() Meter { return marks{metric.NewColumns(l.Width)} }

// marks is a Meter.
type marks struct{ *metric.Columns }

// Reset implements Meter.
func (m marks) Reset(int) { m.Columns.Reset() }

// Add implements Meter.
func (m marks) Add(_ int, output []float32, target []int32) {
	m.Columns.Add(output, func(column int) int { return sideOf(target, column) })
}

// Exported implements Meter.
func (m marks) Exported(int) int { return m.Columns.Exported() }

// Export implements Meter.
func (m marks) Export(to []byte, _ []int) []byte { return m.Columns.Export(to) }

// Merge implements Meter.
func (m marks) Merge(from []byte, _ []int, most int) error { return m.Columns.Merge(from, most) }

// Values implements Meter.
func (m marks) Values(to map[string]float64) {
	if f1, ok := m.MicroF1(); ok {
		to[MicroF1] = f1
	}
	if f1, ok := m.MacroF1(); ok {
		to[MacroF1] = f1
	}
}
