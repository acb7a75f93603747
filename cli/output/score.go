package output

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
)

// Scores are how well the parts of a split are predicted, in words: the accuracies or, of a task
// without any, the metric that epochs are compared by. One that is not known is empty.
type Scores struct{ Train, Val, Test string }

// EpochScores returns the scores of an epoch.
func EpochScores(e *api.JobEpoch) Scores {
	s := Scores{Share(e.TrainAccuracy), Share(e.ValAccuracy), Share(e.TestAccuracy)}
	if e.Metric != "" && e.Metrics != nil {
		s = Scores{metric(e.Metrics.Train, e.Metric), metric(e.Metrics.Val, e.Metric), metric(e.Metrics.Test, e.Metric)}
	}
	return s
}

// BestScores returns the scores of the epoch whose model is kept, but for those of training.
func BestScores(b *api.JobBest) Scores {
	s := Scores{"", Share(b.ValAccuracy), Share(b.TestAccuracy)}
	if b.Metric != "" && b.Metrics != nil {
		s = Scores{"", metric(b.Metrics.Val, b.Metric), metric(b.Metrics.Test, b.Metric)}
	}
	return s
}

// Metrics returns all metrics of an evaluation, a line for each part of the split that has some;
// none if there is the accuracy alone.
func Metrics(m *api.JobMetrics) (lines []string) {
	if m == nil {
		return nil
	}
	more := false
	for _, part := range []struct {
		name string
		of   map[string]float64
	}{{"training", m.Train}, {"validation", m.Val}, {"test", m.Test}} {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(part.of)) {
			list, more = append(list, metric(part.of, name)), more || name != "accuracy"
		}
		if len(list) > 0 {
			lines = append(lines, strings.Join(list, ", ")+" on "+part.name)
		}
	}
	if !more {
		return nil
	}
	return lines
}

// metric returns a metric with its name.
func metric(of map[string]float64, by string) string {
	x, ok := of[by]
	if !ok {
		return ""
	}
	return by + " " + strconv.FormatFloat(x, 'g', 4, 64)
}
