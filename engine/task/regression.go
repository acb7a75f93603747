package task

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/metric"
)

// The losses and metrics of numbers.
const (
	L2    = "l2"
	L1    = "l1"
	Huber = "huber"

	RMSE = "rmse"
	MAE  = "mae"
	R2   = "r2"
)

// slopes are the losses of a number.
var slopes = map[string]cellLoss{
	L2: func(y, target float64) (loss, slope float64) {
		off := y - target
		return off * off, 2 * off
	},
	L1: func(y, target float64) (loss, slope float64) {
		switch off := y - target; {
		case off > 0:
			return off, 1
		case off < 0:
			return -off, -1
		default:
			return off, 0 // 0 or NaN
		}
	},
	Huber: huber(1),
}

// huber returns the loss that is half the square up to an error of delta, and goes on as a line.
func huber(delta float64) cellLoss {
	return func(y, target float64) (loss, slope float64) {
		switch off := y - target; {
		case off > delta:
			return delta * (off - delta/2), delta
		case off < -delta:
			return delta * (-off - delta/2), -delta
		default:
			return off * off / 2, off
		}
	}
}

// lossOf returns the loss of a recipe.
func lossOf(s Spec) cellLoss {
	if s.Loss == Huber && s.Delta > 0 {
		return huber(s.Delta)
	}
	return slopes[s.Loss]
}

// regression is the task of a number in each of several columns. A word is its bits.
var regression = Kind{
	Name:    "regression",
	Targets: graph.Numbers,
	Losses:  []Loss{{L2, numbers}, {L1, numbers}, {Huber, numbers}},
	Metrics: []Metric{{Name: RMSE, Lower: true}, {Name: MAE, Lower: true}, {Name: R2}},
	Column:  "value",
	Scores:  "the predicted numbers",
	make:    func(s Spec) Task { return values{&cells{Spec: s, loss: lossOf(s)}} },
}

const numbers = "Each column is the number itself."

// values implements Task.
type values struct{ *cells }

// Meter implements Task.
func (v values) Meter() Meter { return offs{metric.NewErrors(v.Width)} }

// offs is a Meter.
type offs struct{ *metric.Errors }

// Add implements Meter.
func (o offs) Add(shard int, output []float32, target []int32) {
	o.Errors.Add(shard, output, func(column int) float64 { return number(target[column]) })
}

// Values implements Meter.
func (o offs) Values(to map[string]float64) {
	if absolute, square, ok := o.Mean(); ok {
		to[MAE], to[RMSE] = absolute, math.Sqrt(square)
	}
	if share, ok := o.R2(); ok {
		to[R2] = share
	}
}
