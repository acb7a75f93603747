package evaluate

import (
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/task"
)

// A Result is an exact evaluation of one model: scores of every part of the split, with
// all neighbours of every vertex.
type Result struct {
	Seconds float64 `json:"seconds"`
	// Sent counts what all nodes sent each other for it.
	Sent  peer.Counts `json:"sent,omitzero"`
	Train Scores      `json:"train"`
	Val   Scores      `json:"val"`
	Test  Scores      `json:"test"`
	// Metrics are those of a task without an accuracy; nil: the scores have them all.
	Metrics *epoch.Metrics `json:"metrics,omitempty"`
}

// Scores are those of one part of the split. If it has no vertices, all are 0.
type Scores struct {
	Count    int     `json:"count"` // vertices with a label
	Loss     float64 `json:"loss"`
	Accuracy float64 `json:"accuracy"` // equals micro-F1, since each vertex has one label
	MacroF1  float64 `json:"macro_f1"`
	AUC      float64 `json:"roc_auc"` // one against the rest, mean over classes; 0 unless it is the recipe's metric
}

// share returns the accuracy, nil if there are no vertices or the task has none.
func (r *Result) share(s *Scores) *float64 {
	if s.Count == 0 || r.Metrics != nil {
		return nil
	}
	return new(s.Accuracy)
}

// of returns the score of classes that a metric names.
func (s *Scores) of(metric string) float64 {
	switch metric {
	case task.MacroF1:
		return s.MacroF1
	case task.ROCAUC:
		return s.AUC
	}
	return s.Accuracy
}

// only returns one metric by its name, nil if there are no vertices.
func (s *Scores) only(metric string) map[string]float64 {
	if s.Count == 0 {
		return nil
	}
	return map[string]float64{metric: s.of(metric)}
}

// score returns the score on validation that a metric names: the higher, the better. A metric
// that the vertices do not define is 0.
func (r *Result) score(metric string) float64 {
	if r.Metrics != nil {
		if task.MetricNamed(metric).Lower {
			return -r.Metrics.Val[metric]
		}
		return r.Metrics.Val[metric]
	}
	return r.Val.of(metric)
}

// Record returns what an epoch's record has of the result. The metric ranks epochs.
func (r *Result) Record(metric string) *epoch.Eval {
	metrics := r.Metrics
	switch {
	case metrics != nil:
		metrics = &epoch.Metrics{By: metric, Train: metrics.Train, Val: metrics.Val, Test: metrics.Test}
		metrics.Shorten()
	case metric != task.Accuracy:
		metrics = &epoch.Metrics{By: metric, Train: r.Train.only(metric), Val: r.Val.only(metric), Test: r.Test.only(metric)}
		if task.MetricNamed(metric).Ranked {
			metrics.Train = nil // outputs of training vertices are not ranked
		}
	}
	e := &epoch.Eval{
		Seconds: r.Seconds, Train: r.share(&r.Train), Val: r.share(&r.Val), Test: r.share(&r.Test),
		Score: r.score(metric), Loss: r.Val.Loss, Metrics: metrics,
	}
	_, e.Bytes = r.Sent.Record()
	return e
}
