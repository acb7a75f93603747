package train

import (
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A view is what inference has of one model.
type view struct {
	model   *nn.Model
	weights tensor.Matrix
	pass    *nn.Pass
	stages  []nn.StageInfo
	costOf  []stageCost // of the stages
	lanes   [3]lane     // where it has used them before
}

// over is a pass in the memory of an arena.
func (v *view) over(device tensor.Device, a tensor.Arena) *nn.Pass {
	p := v.model.NewPass(device, a)
	p.Weights = v.weights
	return p
}

// largest is the most that a size is of all models, with all their stages.
func (i *inference) largest(size func(stages int) uint64) (most uint64) {
	now := i.view
	for _, i.view = range i.views {
		most = max(most, size(len(i.stages)))
	}
	i.view = now
	return most
}

// fits says whether parts over all vertices may be had: of all models, where there are
// several, since what they read stays.
func (i *inference) fits(stages int) bool {
	if len(i.views) > 1 {
		return i.largest(i.wholeBytes) <= i.memory
	}
	return i.wholeBytes(stages) <= i.memory
}

// hears says whether the first stage of any model takes the rows of neighbours. Those of
// the others see them as well, and nothing comes of it.
func (i *inference) hears() bool {
	for _, v := range i.views {
		if v.stages[0].Hops > 0 {
			return true
		}
	}
	return false
}
