package evaluate

import (
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// The losses and metrics, as recipes name them.
const (
	Softmax = "softmax"
	BCE     = "bce"

	Accuracy = "accuracy"
	MacroF1  = "macro_f1"
	ROCAUC   = "roc_auc"
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
}

// Scores are those of one part of the split. If it has no vertices, all are 0.
type Scores struct {
	Count    int     `json:"count"` // vertices with a label
	Loss     float64 `json:"loss"`
	Accuracy float64 `json:"accuracy"` // equals micro-F1, since each vertex has one label
	MacroF1  float64 `json:"macro_f1"`
	AUC      float64 `json:"roc_auc"` // one against the rest, mean over classes; 0 unless it is the recipe's metric
}

// share returns the accuracy, nil if there are no vertices.
func (s *Scores) share() *float64 {
	if s.Count == 0 {
		return nil
	}
	return new(s.Accuracy)
}

// of returns the score that a metric names.
func (s *Scores) of(metric string) float64 {
	switch metric {
	case MacroF1:
		return s.MacroF1
	case ROCAUC:
		return s.AUC
	}
	return s.Accuracy
}

// Record returns what an epoch's record has of the result. The metric ranks epochs.
func (r *Result) Record(metric string) *epoch.Eval {
	e := &epoch.Eval{Seconds: r.Seconds, Train: r.Train.share(), Val: r.Val.share(), Test: r.Test.share(), Score: r.Val.of(metric), Loss: r.Val.Loss}
	_, e.Bytes = r.Sent.Record()
	return e
}
