package nn

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// An OptimizerSpec says how gradients become updates.
type OptimizerSpec struct {
	Kind        string  `json:"kind"` // adam, adamw or sgd
	WeightDecay float64 `json:"weight_decay"`
	Momentum    float64 `json:"momentum,omitempty"` // of sgd
}

// What Adam is used with everywhere.
const (
	adamBeta1   = 0.9
	adamBeta2   = 0.999
	adamEpsilon = 1e-8
)

// An Optimizer updates weights and keeps what it remembers between updates.
type Optimizer struct {
	spec    OptimizerSpec
	device  tensor.Device
	moments []Moment
	steps   uint64
}

// NewOptimizer makes one for this many weights, with its memory in the arena, which
// is never reset while it is in use.
func NewOptimizer(spec OptimizerSpec, d tensor.Device, a tensor.Arena, size int) (*Optimizer, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	o := &Optimizer{spec: spec, device: d}
	names := []string{"m", "v"}
	if spec.Kind == "sgd" {
		names = names[:1]
		if spec.Momentum == 0 {
			names = nil
		}
	}
	for _, name := range names {
		row := a.Alloc(d.Type(), 1, size)
		d.Zero(row)
		o.moments = append(o.moments, Moment{name, row})
	}
	return o, nil
}

// Check says in a sentence what is wrong with it.
func (s OptimizerSpec) Check() error {
	switch {
	case s.Kind != "adam" && s.Kind != "adamw" && s.Kind != "sgd":
		return fmt.Errorf("--optimizer is %q: it is one of adam, adamw and sgd", s.Kind)
	case !(s.WeightDecay >= 0 && s.WeightDecay < 1):
		return fmt.Errorf("--weight-decay is %v, but must be at least 0 and below 1", s.WeightDecay)
	case !(s.Momentum >= 0 && s.Momentum < 1):
		return fmt.Errorf("--set train.momentum is %v, but must be at least 0 and below 1", s.Momentum)
	case s.Kind != "sgd" && s.Momentum != 0:
		return &Unused{"train.momentum", fmt.Sprintf("--set train.momentum is for --optimizer sgd, and this is %s", s.Kind)}
	}
	return nil
}

// Step updates the weights by their gradients at this rate.
func (o *Optimizer) Step(weights, gradients tensor.Matrix, rate float64) {
	o.StepColumns(weights, gradients, 0, weights.Cols, rate)
}

// StepColumns is Step of so many columns from first on: others update the rest.
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

// Moments are the rows it remembers, by name ("m", "v"), for checkpoints, and Steps
// how many updates it has done.
func (o *Optimizer) Moments() []Moment { return o.moments }

// Steps counts its updates; SetSteps sets that, when it is read from a checkpoint.
func (o *Optimizer) Steps() uint64 { return o.steps }

// SetSteps is for what a checkpoint holds.
func (o *Optimizer) SetSteps(n uint64) { o.steps = n }

// A Moment is a row that an optimizer remembers.
type Moment struct {
	Name string
	Row  tensor.Matrix
}
