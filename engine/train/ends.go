package train

import (
	"context"
	"fmt"
)

// epoch does what is left of the epoch under way. All learners end it together: what a
// node has when it is interrupted is of before that, or of after.
func (t *trainer) epoch(ctx context.Context) error {
	at := t.place()
	if at.step < t.batches.steps {
		if err := t.turnTo(ctx, at.epoch); err != nil {
			return err
		}
		if err := t.steps(ctx); err != nil {
			return err
		}
	}
	t.take(at.epoch, t.batches.steps)
	if err := t.each(ctx, (*learner).check); err != nil {
		return err
	}
	if err := t.each(ctx, (*learner).conclude); err != nil {
		return err
	}
	if t.shared != nil && t.whole && !t.lead().done() {
		if err := t.learnFrom(ctx, t.ended()); err != nil {
			if ctx.Err() != nil {
				return t.stopped(ctx)
			}
			return fmt.Errorf("look again how the nodes share the job: %w", err)
		}
		t.whole = false
	}
	if t.evaluates(at.epoch) {
		if err := t.each(ctx, (*learner).examine); err != nil {
			return err
		}
	}
	for _, l := range t.turn {
		if !l.done() {
			l.commit()
		}
	}
	if t.done() {
		if err := t.settle(ctx); err != nil {
			if ctx.Err() != nil {
				return t.stopped(ctx)
			}
			return err
		}
	}
	if t.wants() && t.restful() {
		return t.saveSoon()
	}
	return nil
}

// evaluates says whether weights are judged after an epoch.
func (t *trainer) evaluates(epoch int) bool {
	return epoch%t.recipe.EvalEvery == 0 || epoch == t.recipe.Epochs
}

// each has all whose turn it is do something.
func (t *trainer) each(ctx context.Context, do func(*learner, context.Context) error) error {
	for _, l := range t.turn {
		if l.done() {
			continue
		}
		if err := do(l, ctx); err != nil {
			if err := t.lose(l, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// ended is the epoch of all, as long as it took them one after the other.
func (t *trainer) ended() *Epoch {
	sum := t.lead().end
	for _, l := range t.turn {
		if l != t.lead() && !l.done() {
			sum.took(&l.end)
		}
	}
	return &sum
}

// took adds what another epoch took to this one's.
func (e *Epoch) took(o *Epoch) {
	e.Seconds += o.Seconds
	e.Rows, e.Remote, e.Edges = e.Rows+o.Rows, e.Remote+o.Remote, e.Edges+o.Edges
	e.Sent.Add(o.Sent)
	e.Phases.Sample += o.Phases.Sample
	e.Phases.Gather += o.Phases.Gather
	e.Phases.Compute += o.Phases.Compute
	e.Phases.Reduce += o.Phases.Reduce
	e.Phases.Wait += o.Phases.Wait
}

// check says whether the last update was too large: no further loss would tell.
func (t *learner) check(context.Context) error {
	if t.piped.settledAll() && !t.sound() { // else all hear of it from who has them

		return t.diverged(nil, "a weight")
	}
	return nil
}

// conclude sets end to what is told of the epoch, but for its evaluation.
func (t *learner) conclude(ctx context.Context) error {
	t.end = t.at.Under
	e := &t.end
	e.Epoch, e.Model, e.Steps = t.at.Epoch, t.index, t.batches.steps
	e.Loss = t.at.Losses / float64(len(t.data.training))
	if t.piped.whole() {
		e.Hash = t.hash()
	} else {
		e.Hash = t.piped.told
	}
	if err := t.faultNow(); err != nil {
		return err
	}
	if t.shared == nil {
		if t.isolated != nil {
			e.see(t.isolated, t.isolated.seen.edges, t.at.Last.Seen)
		}
		return nil
	}
	if err := t.agree(ctx, e); err != nil {
		if ctx.Err() != nil {
			return t.stopped(ctx)
		}
		return err
	}
	return nil
}

// examine evaluates the epoch.
func (t *learner) examine(ctx context.Context) (err error) {
	e := &t.end
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
	return nil
}

// commit goes on to the next epoch.
func (t *learner) commit() {
	e := t.end
	if e.Eval != nil && e.Eval.Val.Count > 0 && t.at.judge(&e, &t.recipe) {
		t.best = append(t.best[:0], t.host...) // hash has read them
	}
	t.at.Last = e
	t.at.plateau(&t.recipe.Sharing.Grappa)
	t.at.Epoch, t.at.Step, t.at.Losses, t.at.Under = t.at.Epoch+1, 0, 0, Epoch{}
	t.history, t.end = append(t.history, e), Epoch{}
	if t.options.Report != nil {
		t.options.Report(e)
	}
}
