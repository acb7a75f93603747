package train

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Diverged says that numbers are no longer finite: nothing after that is worth
// anything. The checkpoint of before is left as it was.
type Diverged struct {
	Model       string // which, of a sweep; "" where there is one
	Epoch, Step int    // from 1
	Where       string // the first that is not finite: "the weight layers.0.weight"
	Node        string // that computed it, where another one did
	Rate        float64
	Features    bool   // it is the dataset's, whatever the rate
	Checkpoint  string // the last from which a step was made whose numbers are finite; "" if there is none
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
	where := e.Where
	if e.Node != "" {
		where += " on node " + e.Node
	}
	what := "the training"
	if e.Model != "" {
		what = e.Model
	}
	return fmt.Sprintf("%s diverged: in epoch %d, step %d, at a learning rate of %g, %s is not finite: %s", what, e.Epoch, e.Step, e.Rate, where, then)
}

// diverged finds out what is not finite, of the step of s or, where that is nil,
// after the last one. what is said where nothing in particular is found.
func (t *learner) diverged(s *slot, what string) error {
	if err := t.faultNow(); err != nil {
		return err // and no number means anything
	}
	e := &Diverged{Epoch: t.at.Epoch, Step: t.at.Step, Where: what, Rate: t.at.Under.Rate}
	if s != nil {
		e.Step = s.step + 1
	}
	failed := t.place()
	t.keepGood(s)
	if t.badFeatures(s) {
		e.Where, e.Features = "a feature of the dataset", true
	} else if where := t.notFinite(s); where != "" {
		e.Where = where
	}
	return t.leaving(e, failed)
}

// divergedThere is what another node has found of the step of s.
func (t *learner) divergedThere(s *slot, node int) error {
	failed := t.place()
	e := &Diverged{Epoch: t.at.Epoch, Step: s.step + 1, Where: "what a step makes", Node: t.shared.name(node), Rate: t.at.Under.Rate}
	t.keepGood(s)
	return t.leaving(e, failed)
}

// keepGood leaves a checkpoint of the last average before a step that diverged, if there is
// none. What that step itself began with is none: nothing finite comes of it.
func (t *learner) keepGood(s *slot) {
	if s == nil || t.saved.good || t.sweeps() {
		return
	}
	failed := t.place()
	if t.local.back(t); t.place() == failed {
		return
	}
	if err := t.save(); err != nil {
		t.log.Warn("could not write a checkpoint of before the training diverged", "err", err)
	}
}

// leaving says what is left, after what began at a place. Of a sweep, no model can go on at
// another rate.
func (t *learner) leaving(e *Diverged, failed place) error {
	e.Model = t.called()
	if !t.sweeps() && t.goodBefore(failed) {
		e.Checkpoint = filepath.Join(t.options.Dir, CheckpointFile)
		e.CheckpointEpoch, e.CheckpointStep = t.saved.epoch, t.saved.step
	}
	return e
}

// badFeatures says whether a feature that the step read is not finite.
func (t *learner) badFeatures(s *slot) bool {
	if s == nil {
		return false
	}
	if t.front != nil {
		return !t.front.Finite(s.front)
	}
	return slices.ContainsFunc(s.groups, func(g group) bool {
		return len(g.Roots) > 0 && g.input.Sparse == nil && !t.device.Finite(g.input.Dense)
	})
}

// notFinite names the first weight, else the first stage of the step, else the
// first gradient that is not finite.
func (t *learner) notFinite(s *slot) string {
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
	for i := range s.groups {
		if len(s.groups[i].Roots) == 0 {
			continue
		}
		if name := t.stageOf(s, &s.groups[i]); name != "" {
			return "what " + name + " gives"
		}
	}
	if name := t.firstOf(t.gradients); name != "" {
		return "the gradient of " + name
	}
	return ""
}

// firstOf names the first param that is not finite in a row of all.
func (t *learner) firstOf(row tensor.Matrix) string {
	for _, p := range t.model.Params() {
		if !t.device.Finite(row.View(0, 1, p.Offset, p.Rows*p.Cols)) {
			return p.Name
		}
	}
	return ""
}

// stageOf runs a group of the step again, without dropout, and names the first stage
// that gives what is not finite.
func (t *learner) stageOf(s *slot, g *group) string {
	if t.front != nil {
		return t.front.stageOf(t, s, g)
	}
	t.work.Reset()
	blocks := g.batch.Blocks
	var x, carry tensor.Matrix
	for i, stage := range t.model.Stages() {
		if stage.Hops == 0 {
			x, carry = t.pass.Stage(i, nil, g.input, x, carry)
		} else {
			x, carry = t.pass.Stage(i, &blocks[0], g.input, x, carry)
			blocks = blocks[1:]
		}
		if !t.device.Finite(x) {
			return stage.Name
		}
	}
	return ""
}
