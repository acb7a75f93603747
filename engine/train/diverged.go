package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Diverged finds what is not finite in the step of s or, if s is nil, after the last
// step. what is reported if nothing in particular is found.
func (t *Learner) Diverged(s *slot.Slot, what string) error {
	if err := t.Fault(); err != nil {
		return err // and no number is valid
	}
	e := &trained.Diverged{Epoch: t.At.Epoch, Step: t.At.Step, Where: what, Rate: t.At.Under.Rate}
	if s != nil {
		e.Step = s.Step + 1
	}
	failed := t.Run.Place()
	t.keepGood(s)
	if t.badFeatures(s) {
		e.Where, e.Features = "a feature of the dataset", true
	} else if where := t.NotFinite(s); where != "" {
		e.Where = where
	}
	return t.leaving(e, failed)
}

// blame returns the error of a run: of one that has diverged a Damaged, if that may be the reason.
func (t *Trainer) blame(ctx context.Context, err error) error {
	if _, diverged := errors.AsType[*trained.Diverged](err); !diverged {
		return err
	}
	return t.intact.Blame(ctx, err)
}

// DivergedThere returns what another node found in the step of s.
func (t *Learner) DivergedThere(s *slot.Slot, node int) error {
	failed := t.Run.Place()
	e := &trained.Diverged{Epoch: t.At.Epoch, Step: s.Step + 1, Where: "what a step makes", Node: t.Run.Session.Name(node), Rate: t.At.Under.Rate}
	t.keepGood(s)
	return t.leaving(e, failed)
}

// keepGood leaves a checkpoint of the last average before a step that diverged, if
// there is none. The state that the step began with is no use: it leads to nothing
// finite.
func (t *Learner) keepGood(s *slot.Slot) {
	if _, good := t.Run.Checkpoints.Last(); s == nil || good || t.Run.Sweeps() {
		return
	}
	failed := t.Run.Place()
	if t.Run.Method.Back(t); t.Run.Place() == failed {
		return
	}
	if err := t.Run.SaveBack(); err != nil {
		t.Run.Log.Warn("could not write a checkpoint of before the training diverged", "err", err)
	}
}

// leaving adds which checkpoint is left after a failure that began at a place. No model
// of a sweep can go on at another rate.
func (t *Learner) leaving(e *trained.Diverged, failed checkpoint.Place) error {
	e.Model = t.called()
	if !t.Run.Sweeps() && t.Run.Checkpoints.GoBack(failed) {
		at, _ := t.Run.Checkpoints.Last()
		e.Checkpoint, e.CheckpointEpoch, e.CheckpointStep = t.Run.Checkpoints.Path(), at.Epoch, at.Step
	}
	return e
}

// badFeatures reports whether a feature that the step read is not finite.
func (t *Learner) badFeatures(s *slot.Slot) bool {
	if s == nil {
		return false
	}
	return !t.Run.Method.Finite(t, s)
}

// NotFinite names the first weight, else the first stage of the step, else the first
// gradient that is not finite.
func (t *Learner) NotFinite(s *slot.Slot) string {
	if name := t.firstOf(t.Weights); name != "" {
		return "the weight " + name
	}
	for _, m := range t.Optimizer.Moments() {
		if name := t.firstOf(m.Row); name != "" {
			return "what the optimizer remembers of " + name
		}
	}
	if s == nil {
		return ""
	}
	for i := range s.Groups {
		if len(s.Groups[i].Roots) == 0 {
			continue
		}
		if name := t.Run.Method.Stage(t, s, &s.Groups[i]); name != "" {
			return "what " + name + " gives"
		}
	}
	if name := t.firstOf(t.Gradients); name != "" {
		return "the gradient of " + name
	}
	return ""
}

// firstOf names the first param that is not finite in a row of all.
func (t *Learner) firstOf(row tensor.Matrix) string {
	for _, p := range t.Model.Params() {
		if !t.Run.Device.Finite(row.View(0, 1, p.Offset, p.Rows*p.Cols)) {
			return p.Name
		}
	}
	return ""
}

// drop takes a learner of a sweep that has diverged out of the run. It returns an error
// that ends the run: any other than divergence, or that no learner is left. All nodes
// decide alike, since all find out in the same step.
func (t *Trainer) drop(ctx context.Context, l *Learner, err error) error {
	d, diverged := errors.AsType[*trained.Diverged](err)
	if !diverged || !t.Sweeps() {
		return err
	}
	err = t.blame(ctx, err)
	if _, damaged := errors.AsType[*Damaged](err); damaged {
		return err
	}
	l.At.Diverged = d
	t.Log.Warn("a model of the sweep has diverged; the others go on", "model", l.Index, "err", err)
	l.reportDropped()
	if err := t.allDiverged(); err != nil {
		return err
	}
	// Its epoch is not reported: its share of the nodes' work is reported with
	// another's.
	if next := t.Lead(); !next.Done() {
		next.At.Under.Took(&l.At.Under)
		next.end.Took(&l.end)
		if l.end.Scores != nil {
			next.end.Sent.Add(l.end.Scores.Sent)
		}
	}
	return nil
}

// dropUnsound takes those learners out of an interrupted run that the next step would
// find diverged, so that the others' progress is kept.
func (t *Trainer) dropUnsound(ctx context.Context) error {
	for _, l := range t.Learners {
		t.Method.Back(l)
		if l.Done() {
			continue
		}
		if err := l.check(ctx); err != nil {
			if err := t.drop(ctx, l, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// reportDropped reports a learner that has diverged.
func (t *Learner) reportDropped() {
	if t.At.Diverged != nil && t.Run.Options.Lost != nil {
		t.Run.Options.Lost(t.Index, t.At.Diverged.Error())
	}
}

// allDiverged returns the error of a sweep whose models have all diverged.
func (t *Trainer) allDiverged() error {
	for _, l := range t.Learners {
		if l.At.Diverged == nil {
			return nil
		}
	}
	return fmt.Errorf("all %d models of the sweep have diverged: %w", len(t.Learners), t.Learners[0].At.Diverged)
}

// called returns the name of the model of a sweep for a message; "" where there is one
// model.
func (t *Learner) called() string {
	if !t.Run.Sweeps() {
		return ""
	}
	params := t.Run.Recipe.Sweep[t.Index].Params
	var all []string
	for _, key := range slices.Sorted(maps.Keys(params)) {
		all = append(all, key+"="+params[key])
	}
	if len(all) == 0 {
		return fmt.Sprintf("model %d", t.Index)
	}
	return fmt.Sprintf("model %d (%s)", t.Index, strings.Join(all, ", "))
}
