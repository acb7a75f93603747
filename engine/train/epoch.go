package train

// An Epoch is what is told of one epoch. Shares are of 1.
type Epoch struct {
	Epoch   int     `json:"epoch"` // from 1
	Loss    float64 `json:"loss"`  // the mean over training vertices, as trained
	Rate    float64 `json:"lr"`
	Seconds float64 `json:"seconds"` // of training alone
	Phases  Phases  `json:"phases"`
	Rows    uint64  `json:"rows"` // input rows gathered
	Edges   uint64  `json:"edges"`
	Steps   int     `json:"steps"`
	Hash    string  `json:"weights_sha256"`
	Eval    *Eval   `json:"eval,omitempty"` // nil: not evaluated
}

// Phases is where the time of an epoch went, in seconds. Work that overlaps counts
// where its thread was; Wait is computing's wait for samples.
type Phases struct {
	Sample  float64 `json:"sample"`
	Gather  float64 `json:"gather"`
	Compute float64 `json:"compute"`
	Wait    float64 `json:"wait"`
}

// An Eval is an exact evaluation after an epoch, with all neighbours.
type Eval struct {
	Seconds float64 `json:"seconds"`
	Train   Scores  `json:"train"`
	Val     Scores  `json:"val"`
	Test    Scores  `json:"test"`
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
