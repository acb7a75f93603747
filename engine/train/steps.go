package train

import (
	"context"
	"fmt"
	"runtime/pprof"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// progressEvery is how often progress is told at most.
const progressEvery = 100 * time.Millisecond

// steps trains what is left of the epoch under way.
func (t *trainer) steps(ctx context.Context) error {
	at := t.place()
	if t.front != nil {
		t.front.From(uint32(at.epoch), at.step)
	}
	defer t.isolate()()
	t.batches.begin(ctx, at.epoch, at.step)
	defer t.batches.end()
	defer t.front.stop()
	defer t.round(false)
	t.whole = at.step == 0
	t.take(at.epoch, at.step)
	for _, l := range t.learners {
		l.begin(at.epoch)
	}
	if t.shared != nil {
		t.lead().at.Under.Sent.Add(t.shared.start.Take()) // what came before is the first epoch's
		t.lead().at.Under.Sent.Add(t.isolated.brought())
	}
	if err := t.saveFirst(); err != nil {
		return err
	}
	t.begun = time.Now()
	defer func() { t.lead().rest() }()
	for step := at.step; step < t.batches.steps; step++ {
		if ctx.Err() != nil {
			return t.stopped(ctx)
		}
		t.take(at.epoch, step)
		if len(t.turn) == 0 {
			return nil // the last of them has diverged, on all nodes
		}
		s, wait, err := t.next(ctx, step)
		if err != nil {
			if ctx.Err() != nil {
				return t.stopped(ctx)
			}
			return fmt.Errorf("prepare step %d of epoch %d: %w", step+1, at.epoch, err)
		}
		t.lead().at.Under.Phases.Wait += wait.Seconds()
		if err := t.stepAll(ctx, s); err != nil {
			return err
		}
		t.batches.release(s)
		t.tell(false)
		if t.due() && t.averaged() && t.restful() {
			t.lead().rest() // what is written now is no time of training
			err := t.saveSoon()
			t.begun = time.Now()
			if err != nil {
				return err
			}
		}
		if err := t.left(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin begins to train what is left of an epoch, if that is under way.
func (t *learner) begin(epoch int) {
	if t.done() || t.at.Epoch != epoch {
		return
	}
	e := &t.at.Under
	e.Epoch, e.Model, e.Steps = epoch, t.index, t.batches.steps
	e.Rate = t.recipe.Schedule.rate(t.recipe.Rate, epoch, t.recipe.Epochs, t.at.Falls)
}

// stepAll has all whose turn it is train a step. What was sampled and gathered for it
// is told with the first of them, and what each does with its own epoch.
func (t *trainer) stepAll(ctx context.Context, s *slot) error {
	s.landing.arrive()
	defer s.landing.leave()
	sent := s.tally.Take()
	for _, l := range t.turn {
		t.lead().rest()
		if err := l.trainOn(ctx, s); err != nil {
			if err := t.lose(l, err); err != nil {
				return err
			}
		}
	}
	if l := t.lead(); !l.done() {
		l.count(s, sent)
	}
	return nil
}

// trainOn does a step, and what follows from it.
func (t *learner) trainOn(ctx context.Context, s *slot) error {
	e := &t.at.Under
	start := time.Now()
	pprof.SetGoroutineLabels(t.phases.compute)
	t.round(t.recipe.BF16)
	loss, reducing, err := t.step(ctx, s, e.Rate)
	pprof.SetGoroutineLabels(t.phases.other)
	t.rest()
	if err != nil {
		if ctx.Err() != nil {
			return t.stopped(ctx)
		}
		return err
	}
	e.Phases.Compute += (time.Since(start) - reducing).Seconds()
	e.Phases.Reduce += reducing.Seconds()
	if t.shared != nil {
		e.Sent.Add(s.tally.Take())
		e.Slots = max(e.Slots, s.slots())
	}
	t.at.Losses += loss
	t.at.Step++
	return nil
}

// averaged says whether all models are what a checkpoint holds.
func (t *trainer) averaged() bool {
	for _, l := range t.turn {
		if !l.done() && !l.local.averaged() {
			return false
		}
	}
	return true
}

func (t *trainer) stopped(ctx context.Context) error {
	return fmt.Errorf("the training was stopped in epoch %d of %d: %w", t.place().epoch, t.recipe.Epochs, context.Cause(ctx))
}

// count adds what was prepared of a step to its epoch.
func (t *learner) count(s *slot, sent strategy.Counts) {
	e := &t.at.Under
	e.Phases.Sample += s.sampling.Seconds()
	e.Phases.Gather += s.gathering.Seconds()
	e.Rows += uint64(s.gathered)
	e.Edges += s.edges()
	if t.shared == nil {
		return
	}
	e.Remote += uint64(s.remote)
	e.Sent.Add(sent)
}

// tell tells of progress, if the last time is long enough ago.
func (t *trainer) tell(evaluating bool) {
	if t.options.Progress == nil || time.Since(t.told) < progressEvery {
		return
	}
	t.told = time.Now()
	at := t.place()
	t.options.Progress(Progress{Epoch: at.epoch, Step: at.step, Steps: t.batches.steps, Evaluating: evaluating})
}

// learnFrom has what deals the steps learn from how long an epoch took.
func (t *trainer) learnFrom(ctx context.Context, e *Epoch) error {
	s := t.shared
	slots := s.dealer.Tuning().Slots
	s.dealer.Note(e.Seconds)
	now := s.dealer.Tuning()
	if now != (strategy.Tuning{}) { // another strategy's stays as it is
		t.tuned(now)
	}
	if t.batches.same && now.Slots != slots && e.Epoch < t.recipe.Epochs {
		// The batch of all epochs was filled for as many as there were.
		if err := t.batches.ahead(ctx, e.Epoch+1, 1, func(*slot) {}); err != nil {
			return err
		}
	}
	return t.reconsider(ctx, e)
}
