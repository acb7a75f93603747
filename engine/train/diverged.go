package train

import (
	"fmt"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Diverged says that numbers are no longer finite: nothing after that is worth
// anything. The checkpoint of before is left as it was.
type Diverged struct {
	Epoch, Step int    // from 1
	Where       string // the first that is not finite: "the weight layers.0.weight"
	Rate        float64
	Features    bool   // it is the dataset's, whatever the rate
	Checkpoint  string // the last good one; "" if there is none
	// CheckpointEpoch and CheckpointStep are where that one stands.
	CheckpointEpoch, CheckpointStep int
}

func (e *Diverged) Error() string {
	then := "start again with a smaller --lr"
	if e.Features {
		then = "correct them and import the dataset anew"
	}
	if e.Checkpoint != "" && !e.Features {
		then = fmt.Sprintf("go on with a smaller --lr from the checkpoint %s, which is of epoch %d after step %d, or start again", e.Checkpoint, e.CheckpointEpoch, e.CheckpointStep)
	}
	return fmt.Sprintf("the training diverged: in epoch %d, step %d, at a learning rate of %g, %s is not finite: %s", e.Epoch, e.Step, e.Rate, e.Where, then)
}

// diverged finds out what is not finite, of the step of s or, where that is nil,
// after the last one. what is said where nothing in particular is found.
func (t *trainer) diverged(s *slot, what string) error {
	e := &Diverged{Epoch: t.at.Epoch, Step: t.at.Step, Where: what, Rate: t.at.Under.Rate}
	if s != nil {
		e.Step = s.step + 1
	}
	if s != nil && !t.saved.good {
		// The step has not changed weights and moments yet: they are those of the last
		// good one.
		if err := t.save(); err != nil {
			t.log.Warn("could not write a checkpoint of before the training diverged", "err", err)
		}
	}
	if s != nil && s.input.Sparse == nil && !t.device.Finite(s.input.Dense) {
		e.Where, e.Features = "a feature of the dataset", true
	} else if where := t.notFinite(s); where != "" {
		e.Where = where
	}
	if t.saved.good {
		e.Checkpoint = filepath.Join(t.options.Dir, CheckpointFile)
		e.CheckpointEpoch, e.CheckpointStep = t.saved.epoch, t.saved.step
	}
	return e
}

// notFinite names the first weight, else the first stage of the step, else the
// first gradient that is not finite.
func (t *trainer) notFinite(s *slot) string {
	if name := t.firstOf(t.weights); name != "" {
		return "the weight " + name
	}
	for _, m := range t.optimizer.Moments() {
		if name := t.firstOf(m.Row); name != "" {
			return "what the optimizer remembers of " + name
		}
	}
	if s == nil {
		return ""
	}
	if name := t.stageOf(s); name != "" {
		return "what " + name + " gives"
	}
	if name := t.firstOf(t.gradients); name != "" {
		return "the gradient of " + name
	}
	return ""
}

// firstOf names the first param that is not finite in a row of all.
func (t *trainer) firstOf(row tensor.Matrix) string {
	for _, p := range t.model.Params() {
		if !t.device.Finite(row.View(0, 1, p.Offset, p.Rows*p.Cols)) {
			return p.Name
		}
	}
	return ""
}

// stageOf runs the step's batch again, without dropout, and names the first stage
// that gives what is not finite.
func (t *trainer) stageOf(s *slot) string {
	t.work.Reset()
	blocks := s.batch.Blocks
	var x, carry tensor.Matrix
	for i, stage := range t.model.Stages() {
		if stage.Hops == 0 {
			x, carry = t.pass.Stage(i, nil, s.input, x, carry)
		} else {
			x, carry = t.pass.Stage(i, &blocks[0], s.input, x, carry)
			blocks = blocks[1:]
		}
		if !t.device.Finite(x) {
			return stage.Name
		}
	}
	return ""
}
