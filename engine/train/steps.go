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
	if t.front != nil {
		t.front.From(uint32(t.at.Epoch), t.at.Step)
	}
	t.batches.begin(ctx, t.at.Epoch, t.at.Step)
	defer t.batches.end()
	t.round(true)
	defer t.round(false)
	t.whole = t.at.Step == 0
	if t.shared != nil {
		t.at.Under.Sent.Add(t.shared.start.Read()) // what came before is the first epoch's
		t.shared.start.Reset()
	}
	e := &t.at.Under
	e.Epoch, e.Steps = t.at.Epoch, t.batches.steps
	e.Rate = t.recipe.Schedule.rate(t.recipe.Rate, t.at.Epoch, t.recipe.Epochs, t.at.Falls)
	t.begun = time.Now()
	defer t.rest()
	for t.at.Step < t.batches.steps {
		if ctx.Err() != nil {
			return t.stopped(ctx)
		}
		s, wait, err := t.batches.next(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return t.stopped(ctx)
			}
			return fmt.Errorf("prepare step %d of epoch %d: %w", t.at.Step+1, t.at.Epoch, err)
		}
		e.Phases.Wait += wait.Seconds()
		start := time.Now()
		pprof.SetGoroutineLabels(t.phases.compute)
		loss, reducing, err := t.step(ctx, s, e.Rate)
		pprof.SetGoroutineLabels(t.phases.other)
		if err != nil {
			if ctx.Err() != nil {
				return t.stopped(ctx)
			}
			return err
		}
		e.Phases.Compute += (time.Since(start) - reducing).Seconds()
		e.Phases.Reduce += reducing.Seconds()
		t.count(e, s)
		t.at.Losses += loss
		t.at.Step++
		t.batches.release(s)
		t.tell(false)
		if t.due() && t.local.averaged() {
			t.rest() // what is written now is no time of training
			err := t.saveSoon()
			t.begun = time.Now()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// rest counts the time since training began or went on.
func (t *trainer) rest() {
	now := time.Now()
	t.at.Under.Seconds += now.Sub(t.begun).Seconds()
	t.begun = now
}

func (t *trainer) stopped(ctx context.Context) error {
	return fmt.Errorf("the training was stopped in epoch %d of %d: %w", t.at.Epoch, t.recipe.Epochs, context.Cause(ctx))
}

// count adds what a step took to its epoch.
func (t *trainer) count(e *Epoch, s *slot) {
	e.Phases.Sample += s.sampling.Seconds()
	e.Phases.Gather += s.gathering.Seconds()
	e.Rows += uint64(s.gathered)
	e.Edges += s.edges()
	if t.shared == nil {
		return
	}
	e.Remote += uint64(s.remote)
	e.Sent.Add(s.tally.Read())
	e.Slots = max(e.Slots, s.slots())
}

// tell tells of progress, if the last time is long enough ago.
func (t *trainer) tell(evaluating bool) {
	if t.options.Progress == nil || time.Since(t.told) < progressEvery {
		return
	}
	t.told = time.Now()
	t.options.Progress(Progress{Epoch: t.at.Epoch, Step: t.at.Step, Steps: t.batches.steps, Evaluating: evaluating})
}

// learnFrom has what deals the steps learn from how long an epoch took.
func (t *trainer) learnFrom(ctx context.Context, e *Epoch) error {
	s := t.shared
	slots := s.dealer.Tuning().Slots
	s.dealer.Note(e.Seconds)
	now := s.dealer.Tuning()
	if now != (strategy.Tuning{}) { // another strategy's stays as it is
		t.at.Tuning = now
	}
	if t.batches.same && now.Slots != slots && e.Epoch < t.recipe.Epochs {
		// The batch of all epochs was filled for as many as there were.
		if err := t.batches.ahead(ctx, e.Epoch+1, 1, func(*slot) {}); err != nil {
			return err
		}
	}
	return t.reconsider(ctx, e)
}

// epoch does what is left of the epoch under way.
func (t *trainer) epoch(ctx context.Context) error {
	if t.at.Step < t.batches.steps {
		if err := t.steps(ctx); err != nil {
			return err
		}
	}
	if !t.sound() {
		return t.diverged(nil, "a weight")
	}
	e := t.at.Under
	e.Epoch, e.Steps = t.at.Epoch, t.batches.steps
	e.Loss = t.at.Losses / float64(len(t.data.training))
	e.Hash = t.hash()
	if t.shared != nil {
		if err := t.agree(ctx, &e); err != nil {
			if ctx.Err() != nil {
				return t.stopped(ctx)
			}
			return err
		}
		if t.whole {
			if err := t.learnFrom(ctx, &e); err != nil {
				if ctx.Err() != nil {
					return t.stopped(ctx)
				}
				return fmt.Errorf("look again how the nodes share the job: %w", err)
			}
			t.whole = false
		}
	}
	if e.Epoch%t.recipe.EvalEvery == 0 || e.Epoch == t.recipe.Epochs {
		var err error
		if e.Eval, err = t.evaluate(ctx); err != nil {
			if ctx.Err() != nil {
				return t.stopped(ctx)
			}
			return fmt.Errorf("evaluate epoch %d: %w", e.Epoch, err)
		}
		if !isNumber(e.Eval.Train.Loss) || !isNumber(e.Eval.Val.Loss) {
			return t.diverged(nil, "the loss of its evaluation")
		}
		if !isNumber(e.Eval.Test.Loss) {
			e.Eval.Test.Loss = 0 // of vertices that nothing is decided by, and JSON has no such number
		}
		if e.Eval.Val.Count > 0 && t.at.judge(&e, &t.recipe) {
			t.best = append(t.best[:0], t.host...) // hash has read them
		}
	}
	t.at.Last = e
	t.at.Epoch, t.at.Step, t.at.Losses, t.at.Under = t.at.Epoch+1, 0, 0, Epoch{}
	t.history = append(t.history, e)
	if t.options.Report != nil {
		t.options.Report(e)
	}
	// The first epoch leaves one in any case: what diverges mostly does so early.
	if t.due() || !t.saved.good && t.keeps() {
		return t.saveSoon()
	}
	return nil
}
