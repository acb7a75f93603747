package train

import (
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
)

// An Epoch is what is told of one epoch. Shares are of 1.
type Epoch struct {
	Epoch   int     `json:"epoch"`           // from 1
	Model   int     `json:"model,omitempty"` // of a sweep, from 0
	Loss    float64 `json:"loss"`            // the mean over training vertices, as trained
	Rate    float64 `json:"lr"`
	Seconds float64 `json:"seconds"` // of training alone
	Phases  Phases  `json:"phases"`
	// Rows counts input rows that were gathered, wherever they were: each once in a group
	// or, where a device adds up the outermost hop as it draws it, once an edge.
	Rows  uint64 `json:"rows"`
	Edges uint64 `json:"edges"`
	Steps int    `json:"steps"`
	Hash  string `json:"weights_sha256"`
	Eval  *Eval  `json:"eval,omitempty"` // nil: not evaluated

	// Of a run that several nodes share. All are sums over the nodes, but Seconds is the
	// slowest node's, and Phases are the mean of all.
	Remote uint64          `json:"remote,omitempty"` // of Rows: those that came from another node
	Sent   strategy.Counts `json:"sent,omitzero"`
	// Strategy is the one that was used and Why what was told of it, where auto chose;
	// Slots is how many a step had, and Behind by how many updates the weights of first
	// layers were older at most than those of their steps.
	Strategy string `json:"strategy,omitempty"`
	Why      string `json:"why,omitempty"`
	Slots    int    `json:"slots,omitempty"`
	Behind   int    `json:"behind,omitempty"`

	// Predicted is what a pipeline's nodes thought that an epoch takes on average, by what
	// they measured when they met; nil: they measured nothing.
	Predicted *pipe.Prediction `json:"predicted,omitempty"`

	// Of a run whose groups train in isolation: its super-epoch, from 1, and the share of
	// all edges that the groups of their targets have seen so far.
	Super int     `json:"super_epoch,omitempty"`
	Seen  float64 `json:"edges_seen,omitempty"`
}

// Phases is where the time of an epoch went, in seconds. Work that overlaps counts
// where its thread was; Wait is computing's wait for samples.
type Phases struct {
	Sample  float64 `json:"sample"`
	Gather  float64 `json:"gather"`
	Compute float64 `json:"compute"`
	Reduce  float64 `json:"reduce,omitempty"` // exchanging what the nodes have made
	Wait    float64 `json:"wait"`
}

// An Eval is an exact evaluation after an epoch, with all neighbours.
type Eval struct {
	Seconds float64 `json:"seconds"`
	// Sent is what all nodes sent each other for it.
	Sent  strategy.Counts `json:"sent,omitzero"`
	Train Scores          `json:"train"`
	Val   Scores          `json:"val"`
	Test  Scores          `json:"test"`
}

// Scores are of one part of the split.
type Scores struct {
	Count    int     `json:"count"` // vertices; of none, all is 0
	Loss     float64 `json:"loss"`
	Accuracy float64 `json:"accuracy"` // which is micro-F1, with one label each
	MacroF1  float64 `json:"macro_f1"`
	AUC      float64 `json:"roc_auc"` // one against the rest, mean over classes; 0 unless it is the recipe's metric
}

// of is the score that a recipe's metric names.
func (s *Scores) of(metric string) float64 {
	switch metric {
	case MacroF1:
		return s.MacroF1
	case ROCAUC:
		return s.AUC
	}
	return s.Accuracy
}

// better says whether an epoch is better than the best so far.
func (e *Eval) better(than *Eval, metric string) bool {
	if than == nil {
		return true
	}
	a, b := e.Val.of(metric), than.Val.of(metric)
	return a > b || a == b && e.Val.Loss < than.Val.Loss
}
