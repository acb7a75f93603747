package train

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/tables"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// learnt is where the learnt rows of a run's vertices are.
type learnt struct {
	tables.Placement
	mark Mark            // where the run stood before the last update, which other nodes may not have made
	rows []tensor.Matrix // the weights and moments
}

// reunite has the nodes go on with learnt rows that lie in checkpoints of several of them, or begin anew, and
// reports whether it did.
func (r *learnt) reunite(ctx context.Context, t *Trainer, greetings []session.Greeting) (bool, error) {
	if !t.Recipe.MayPart() {
		return false, nil
	}
	l := t.Learners[0]
	had := l.At
	from, took, err := r.Reunite(ctx, &tables.Reunion{
		Session: t.Session, Table: l.Rows, Checkpoints: t.Checkpoints, Shards: len(t.Data.Shards), Resume: t.Options.Resume, Log: t.Log,
		Fits: t.fits, Most: t.maxCheckpoint(), Ask: t.pieces, Known: t.Options.Known, Anew: func() error { return l.anew(ctx) },
		Weights: func(c *trained.Snapshot) ([]float32, error) { return c.File.Row("", l.Model.Params(), l.Model.Size()) },
		Adopt:   func(path string) (*trained.State, error) { _, err := t.resume(path); return &l.At, err },
		Done:    func(s *trained.State) bool { return s.Diverged == nil && s.Done(&t.Recipe) },
	})
	if from == tables.Anew {
		t.Notes = append(t.Notes, tables.BegunAnew)
	}
	if err != nil || from < 0 {
		return from == tables.Anew, err
	}
	if took {
		l.At.KeepUnder(had.Epoch, had.Under)
	}
	if !t.Session.Alone() {
		t.tuned(greetings[from].DealTuning())
	}
	return true, nil
}

// here returns an error unless a run that goes on from a checkpoint has all learnt rows that it should:
// those that it lacks would be what they were before the first step.
func (*learnt) here(t *Trainer) error {
	for _, l := range t.Learners {
		if lacks := l.Rows.Lacks(); len(lacks) > 0 {
			return fmt.Errorf("the checkpoint that the training goes on from lacks the learnt rows of shard %d", lacks[0])
		}
	}
	return nil
}

// waits reports whether a checkpoint that is due after so many steps of an epoch waits for its end, since all
// nodes write theirs at once.
func (r *learnt) waits(t *Trainer, done int) bool { return r.Apart && done >= t.Batches.Steps }

// remember marks where the run stands before an update.
func (r *learnt) remember(l *Learner) {
	if !r.Apart {
		return
	}
	if r.rows == nil {
		r.rows = append(r.rows, l.Weights)
		for _, m := range l.Optimizer.Moments() {
			r.rows = append(r.rows, m.Row)
		}
	}
	r.mark.Set(l, r.rows)
}

// saveBefore leaves a checkpoint of before the last update, too, if that was made in the epoch under
// way: with its end all nodes have made it. The run ends.
func (r *learnt) saveBefore(t *Trainer) error {
	l := t.Learners[0]
	last, good := t.Checkpoints.Last()
	if !r.Apart || !t.Checkpoints.Keeps() || !good || last != t.Place() || l.At.Epoch != r.mark.course.At.Epoch || l.Optimizer.Steps() != r.mark.updates+1 || !l.Rows.Back() || !r.mark.Return(l, r.rows) {
		return nil
	}
	metadata, err := t.metadata()
	if err != nil {
		return err
	}
	return t.Checkpoints.SaveEarlier(t.sections(), metadata, func() error { return t.Fault(last.Epoch, last.Step) })
}
