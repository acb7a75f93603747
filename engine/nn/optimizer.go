package nn

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// An OptimizerSpec configures an optimizer.
type OptimizerSpec struct {
	Kind        string  `json:"kind"` // adam, adamw or sgd
	WeightDecay float64 `json:"weight_decay"`
	Momentum    float64 `json:"momentum,omitempty"` // of sgd
}

// Adam's usual constants.
const (
	adamBeta1   = 0.9
	adamBeta2   = 0.999
	adamEpsilon = 1e-8
)

// An Optimizer updates weights and keeps its state between updates.
type Optimizer struct {
	spec    OptimizerSpec
	device  tensor.Device
	moments []Moment
	steps   uint64
}

// NewOptimizer returns an optimizer for this many weights. Its state lies in the arena,
// which must not be reset while it is in use.
func NewOptimizer(spec OptimizerSpec, d tensor.Device, a tensor.Arena, size int) (*Optimizer, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	o := &Optimizer{spec: spec, device: d}
	for _, name := range spec.Moments() {
		row := a.Alloc(d.Type(), 1, size)
		d.Zero(row)
		o.moments = append(o.moments, Moment{name, row})
	}
	return o, nil
}

// Moments returns the names of the rows that the optimizer keeps, each as long as the
// weights.
func (s OptimizerSpec) Moments() []string {
	switch {
	case s.Kind != "sgd":
		return []string{"m", "v"}
	case s.Momentum != 0:
		return []string{"m"}
	}
	return nil
}

// Check returns an error if the spec is invalid.
func (s OptimizerSpec) Check() error {
	switch {
	case s.Kind != "adam" && s.Kind != "adamw" && s.Kind != "sgd":
		return fmt.Errorf("{optimizer} is %q: it is one of adam, adamw and sgd", s.Kind)
	case !(s.WeightDecay >= 0 && s.WeightDecay < 1):
		return fmt.Errorf("{weight-decay} is %v, but must be at least 0 and below 1", s.WeightDecay)
	case !(s.Momentum >= 0 && s.Momentum < 1):
		return fmt.Errorf("{train.momentum} is %v, but must be at least 0 and below 1", s.Momentum)
	case s.Kind != "sgd" && s.Momentum != 0:
		return &Unused{"train.momentum", fmt.Sprintf("{train.momentum} is for {optimizer} sgd, and this is %s", s.Kind)}
	}
	return nil
}

// Step updates the weights by their gradients at this learning rate.
func (o *Optimizer) Step(weights, gradients tensor.Matrix, rate float64) {
	o.StepColumns(weights, gradients, 0, weights.Cols, rate)
}

// StepColumns is Step for count columns starting at first; the rest are updated
// elsewhere.
func (o *Optimizer) StepColumns(weights, gradients tensor.Matrix, first, count int, rate float64) {
	o.steps++
	if count == 0 {
		return
	}
	weights, gradients = weights.View(0, 1, first, count), gradients.View(0, 1, first, count)
	if o.spec.Kind == "sgd" {
		var m tensor.Matrix
		if len(o.moments) > 0 {
			m = o.moments[0].Row.View(0, 1, first, count)
		}
		o.device.SGD(weights, gradients, m, tensor.SGDStep{Rate: rate, Momentum: o.spec.Momentum, Decay: o.spec.WeightDecay})
		return
	}
	m, v := o.moments[0].Row.View(0, 1, first, count), o.moments[1].Row.View(0, 1, first, count)
	o.device.Adam(weights, gradients, m, v, tensor.AdamStep{
		Rate: rate, Beta1: adamBeta1, Beta2: adamBeta2, Epsilon: adamEpsilon,
		Decay: o.spec.WeightDecay, Decoupled: o.spec.Kind == "adamw", Step: o.steps,
	})
}

// StepRows updates the rows of a table that a step has touched, given with their moments, and is
// not called for others. It is PyTorch's SparseAdam, but that epsilon is added where Adam adds it:
// moments of rows that are not touched stay, and biases are corrected by the number of updates of
// the job. Weights do not decay. sgd has no momentum then.
func (s OptimizerSpec) StepRows(d tensor.Device, rows, gradients tensor.Matrix, moments []tensor.Matrix, rate float64, steps uint64) {
	if s.Kind == "sgd" {
		d.SGD(rows, gradients, tensor.Matrix{}, tensor.SGDStep{Rate: rate})
		return
	}
	d.Adam(rows, gradients, moments[0], moments[1], tensor.AdamStep{
		Rate: rate, Beta1: adamBeta1, Beta2: adamBeta2, Epsilon: adamEpsilon, Step: steps,
	})
}

// Moments returns the optimizer's state by name ("m", "v"), for checkpoints.
func (o *Optimizer) Moments() []Moment { return o.moments }

// Steps returns the number of updates done.
func (o *Optimizer) Steps() uint64 { return o.steps }

// SetSteps restores the number of updates from a checkpoint.
func (o *Optimizer) SetSteps(n uint64) { o.steps = n }

// A Moment is one row of an optimizer's state.
type Moment struct {
	Name string
	Row  tensor.Matrix
}
