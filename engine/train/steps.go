package train

import (
	"context"
	"fmt"
	"math"
	"runtime/pprof"
	"time"

	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// ProgressEvery is the least time between two progress reports.
const ProgressEvery = 100 * time.Millisecond

// Steps trains what is left of the epoch under way.
func (t *Trainer) Steps(ctx context.Context) error {
	at := t.Place()
	t.Take(at.Epoch, at.Step)
	t.yieldRows()
	t.Method.BeginSteps(at.Epoch, at.Step)
	defer t.Batches.End()
	defer t.Method.EndSteps()
	defer t.round(false)
	t.whole = at.Step == 0
	for _, l := range t.Learners {
		l.Begin(at.Epoch)
	}
	if !t.Session.Alone() {
		t.Lead().At.Under.Sent.Add(t.Session.Start.Take()) // what came before counts for the first epoch
	}
	if err := t.saveFirst(); err != nil {
		return err
	}
	t.begun = time.Now()
	defer func() { t.Lead().Clock() }()
	if at.Step == 0 {
		if err := t.completeRows(ctx); err != nil { // before batches ask for some of them
			return err
		}
	}
	t.Batches.Begin(ctx, at.Epoch, at.Step)
	for step := at.Step; step < t.Batches.Steps; step++ {
		if ctx.Err() != nil {
			return t.Stopped(ctx)
		}
		start := time.Now()
		t.Take(at.Epoch, step)
		if len(t.Turn) == 0 {
			return nil // the last of them has diverged, on all nodes
		}
		s, later, wait, err := t.Batches.Next(ctx, step)
		if err != nil {
			if ctx.Err() != nil {
				return t.Stopped(ctx)
			}
			return fmt.Errorf("prepare step %d of epoch %d: %w", step+1, at.Epoch, err)
		}
		t.Lead().At.Under.Phases.Wait += wait.Seconds()
		if err := t.StepAll(ctx, s, later); err != nil {
			return err
		}
		t.Batches.Release(s)
		if c := t.Sharing.Chooser; c != nil {
			c.Stepped(at.Epoch, step, time.Since(start))
		}
		t.Progress(false)
		if t.due() && !t.Sharing.learnt.waits(t, step+1) && t.averaged() && t.resumable() {
			t.Lead().Clock() // writing a checkpoint is no training time
			err := t.saveConfirmed(ctx)
			t.begun = time.Now()
			if err != nil {
				return err
			}
		}
		if err := t.leaveIfAsked(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Begin begins to train what is left of an epoch, if that is under way.
func (t *Learner) Begin(epoch int) {
	if t.Done() || t.At.Epoch != epoch {
		return
	}
	e := &t.At.Under
	e.Epoch, e.Model, e.Steps = epoch, t.Index, t.Run.Batches.Steps
	e.Rate = t.Recipe.Schedule.Rate(t.Recipe.Rate, epoch, t.Recipe.Epochs, t.At.Falls)
}

// StepAll trains a step with every learner whose turn it is. Its sampling and gathering
// count for the first of them, and the rest for each one's own epoch.
func (t *Trainer) StepAll(ctx context.Context, s *slot.Slot, later []*slot.Slot) error {
	s.Staged.Arrive()
	defer s.Staged.Leave()
	t.intact.Stepped()
	if err := t.Arrive(ctx, s); err != nil {
		if ctx.Err() != nil {
			return t.Stopped(ctx)
		}
		return err
	}
	sent := s.Tally.Take()
	for _, l := range t.Turn {
		t.Lead().Clock()
		if err := l.trainOn(ctx, s, later); err != nil {
			if err := t.drop(ctx, l, err); err != nil {
				return err
			}
		}
	}
	if l := t.Lead(); !l.Done() {
		l.count(s, sent)
	}
	return nil
}

// Arrive gathers what a step reads, if that is gathered when the step begins.
func (t *Trainer) Arrive(ctx context.Context, s *slot.Slot) error {
	pprof.SetGoroutineLabels(t.Phases.Gather)
	defer pprof.SetGoroutineLabels(t.Phases.Other)
	start := time.Now()
	l := t.Lead()
	far, err := t.Sharing.learnt.Bring(ctx, t.Session, l.Rows, s, l.At.Epoch, t.Dealt(s.Step).Asking)
	if err != nil {
		return err
	}
	s.Gathering += time.Since(start)
	t.Batches.Arrive(s, t.Device, t.Work, t.Data.Features, far)
	return nil
}

// trainOn does a step, and what follows from it.
func (t *Learner) trainOn(ctx context.Context, s *slot.Slot, later []*slot.Slot) error {
	e := &t.At.Under
	start := time.Now()
	pprof.SetGoroutineLabels(t.Run.Phases.Compute)
	t.Run.round(t.Recipe.BF16)
	loss, reducing, err := t.Run.Method.Step(ctx, t, s, later, e.Rate)
	pprof.SetGoroutineLabels(t.Run.Phases.Other)
	t.Clock()
	if err != nil {
		if ctx.Err() != nil {
			return t.Run.Stopped(ctx)
		}
		return err
	}
	e.Phases.Compute += (time.Since(start) - reducing).Seconds()
	e.Phases.Reduce += reducing.Seconds()
	if !t.Run.Session.Alone() {
		e.Sent.Add(s.Tally.Take())
		e.Slots = max(e.Slots, s.Slots())
	}
	t.At.Losses += loss
	t.At.Step++
	return nil
}

// Update updates the weights by their gradients, and the learnt rows.
func (t *Learner) Update(rate float64) {
	t.Run.Sharing.learnt.remember(t)
	t.Optimizer.Step(t.Weights, t.Gradients, rate)
	t.Rows.Update(rate, t.Optimizer.Steps())
}

// averaged reports whether all models are in a state that a checkpoint may hold.
func (t *Trainer) averaged() bool {
	for _, l := range t.Turn {
		if !l.Done() && !t.Method.Common(l) {
			return false
		}
	}
	return true
}

// Stopped returns the error of a run whose context has ended.
func (t *Trainer) Stopped(ctx context.Context) error {
	return fmt.Errorf("the training was stopped in epoch %d of %d: %w", t.Place().Epoch, t.Recipe.Epochs, context.Cause(ctx))
}

// count adds the cost of preparing a step to its epoch.
func (t *Learner) count(s *slot.Slot, sent peer.Counts) {
	e := &t.At.Under
	e.Phases.Sample += s.Sampling.Seconds()
	e.Phases.Gather += s.Gathering.Seconds()
	e.Rows.Add(epoch.Rows{Local: uint64(s.Gathered - s.Remote), Remote: uint64(s.Remote), Kept: uint64(s.Kept)})
	e.Edges += s.Edges()
	e.Sent.Add(sent)
}

// Progress reports progress, if the last report is long enough ago.
func (t *Trainer) Progress(evaluating bool) {
	if t.Options.Progress == nil || time.Since(t.progressed) < ProgressEvery {
		return
	}
	t.progressed = time.Now()
	at := t.Place()
	t.Options.Progress(Progress{Epoch: at.Epoch, Step: at.Step, Steps: t.Batches.Steps, Evaluating: evaluating})
}

// learnFrom decides by how long an epoch took how those that follow are shared.
func (t *Trainer) learnFrom(ctx context.Context, e *trained.Epoch) error {
	if !t.decides(e.Epoch) {
		return nil
	}
	c := t.Sharing.Chooser
	if c == nil || !c.Trying(e.Epoch) {
		if err := t.retune(ctx, e); err != nil {
			return err
		}
	}
	if c == nil || !t.decides(e.Epoch) {
		return nil
	}
	return c.Reconsider(ctx, e)
}

// saveFirst writes a checkpoint where there is none yet and a run can't be resumed at
// every step, or where the last lacks what came from other nodes: so there is always one to resume from.
func (t *Trainer) saveFirst() error {
	if _, good := t.Checkpoints.Last(); good || !t.keeps() || !t.Method.SavesFirst() && !t.Checkpoints.Superseded() || !t.resumable() {
		return nil
	}
	return t.saveSoon()
}

// resumable reports whether the run can be resumed from here.
func (t *Trainer) resumable() bool {
	for _, l := range t.Learners {
		if !t.Method.Resumes(l) {
			return false
		}
	}
	return true
}

// Unsound is the flag of a note that marks a node's part of a step as not finite.
const Unsound uint64 = 1

// Says returns what this node's note of a step says of checkpoints.
func (t *Trainer) Says() uint64 {
	return t.Sharing.learnt.Says(t.Checkpoints, t.Place().Step+1 >= t.Batches.Steps)
}

// Hears notes what some nodes' notes of a step say of checkpoints.
func (t *Trainer) Hears(flags uint64) {
	t.Together = t.Sharing.learnt.Hears(t.Checkpoints, flags) || t.Together
}

// IsNumber reports whether x is finite.
func IsNumber(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// sound reports whether the state before the next step is finite.
func (t *Learner) sound() bool {
	sound := t.Run.Device.Finite(t.Weights) && t.Rows.Sound()
	for _, m := range t.Optimizer.Moments() {
		sound = sound && t.Run.Device.Finite(m.Row)
	}
	return sound
}
