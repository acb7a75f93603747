package train

import (
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A Recipe is everything that decides what is learnt from a graph. It is what a job
// is in the plan and in checkpoints: complete, with nothing left to defaults.
type Recipe struct {
	Model     nn.Spec          `json:"model"`
	Optimizer nn.OptimizerSpec `json:"optimizer"`
	Rate      float64          `json:"lr"`
	Schedule  Schedule         `json:"schedule"`
	Epochs    int              `json:"epochs"`
	Batch     int              `json:"batch"`              // roots a step; 0: all training vertices
	Fanouts   []int            `json:"fanouts,omitempty"`  // from the roots outwards, 0: all; none: all at every hop
	Features  string           `json:"normalize_features"` // auto, row, none, binary or binary-row
	Loss      string           `json:"loss"`               // softmax or bce
	Patience  int              `json:"patience"`           // evaluations without a better one; 0: never stops early
	EvalEvery int              `json:"eval_every"`         // epochs
	Metric    string           `json:"metric"`             // what the best epoch is best in: accuracy, macro_f1 or roc_auc
	Split     int              `json:"split"`
	Seed      uint64           `json:"seed"`
	BF16      bool             `json:"bf16_products"` // products of BF16 numbers, where the CPU has them
	// Sharing is how nodes share the work. It changes what is learnt by no more than
	// the last digits of sums, but where it says so.
	Sharing strategy.Settings `json:"sharing,omitzero"`
	// Sweep, where there is one, are the models that are trained on the same batches: what
	// the rest of the recipe says is that of the first of them.
	Sweep []Variant `json:"sweep,omitempty"`
}

// A Variant is one model of a sweep.
type Variant struct {
	Params map[string]string `json:"params"` // that make it differ, as they were typed
	Recipe Recipe            `json:"recipe"` // whole, and without a sweep
}

// Models are the recipes of all models that are trained.
func (r *Recipe) Models() []Recipe {
	if len(r.Sweep) == 0 {
		return []Recipe{*r}
	}
	var all []Recipe
	for _, v := range r.Sweep {
		all = append(all, v.Recipe)
	}
	return all
}

// The losses and the metrics.
const (
	Softmax = "softmax"
	BCE     = "bce"

	Accuracy = "accuracy"
	MacroF1  = "macro_f1"
	ROCAUC   = "roc_auc"
)

// DefaultRecipe is what a job trains that says no more than its model.
func DefaultRecipe(model string) Recipe {
	return Recipe{
		Model:     nn.Defaults(model),
		Optimizer: nn.OptimizerSpec{Kind: "adam", WeightDecay: 5e-4},
		Rate:      0.01,
		Schedule:  Schedule{Kind: Constant},
		Epochs:    200,
		Features:  "auto",
		Loss:      Softmax,
		EvalEvery: 1,
		Metric:    Accuracy,
	}
}
