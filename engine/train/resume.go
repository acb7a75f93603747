package train

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// resumeOwn resumes from the last checkpoint, if there is one. If the nodes of a larger run had learnt
// rows in parts, it must have them all.
func (t *Trainer) resumeOwn(ctx context.Context) error {
	if !t.Checkpoints.Exists() {
		return nil
	}
	if _, err := t.resumeLast(); err != nil {
		return err
	}
	_, err := t.Sharing.learnt.reunite(ctx, t, nil)
	return err
}

// resumeLast resumes from the last checkpoint or, if that is damaged, from the one before it,
// if that was left. This is reported to the run's owner.
func (t *Trainer) resumeLast() (digest [sha256.Size]byte, err error) {
	path := t.Checkpoints.Path()
	c, damaged := trained.OpenCheckpoint(path)
	if damaged == nil {
		return t.resumeFrom(c, path)
	}
	if !errors.Is(damaged, checkpoint.ErrDamaged) {
		return digest, damaged // another try may read it
	}
	err = t.Checkpoints.FallBack(func(before string) error {
		c, err := trained.OpenCheckpoint(before)
		if err != nil {
			return err
		}
		return errors.Join(t.fits(c), c.Close())
	})
	if t.Options.Damaged != nil {
		t.Options.Damaged(damaged, err == nil)
	}
	if err != nil {
		t.Log.Warn("the last checkpoint is damaged, and no earlier one exists", "err", damaged, "before", err)
		return digest, damaged
	}
	t.Log.Warn("the last checkpoint is damaged; the run goes on from the one before it", "err", damaged)
	return t.resume(path)
}

// resume resumes from a checkpoint, and returns the digest of its numbers. The run is
// unchanged until all of the checkpoint has been checked.
func (t *Trainer) resume(path string) (digest [sha256.Size]byte, err error) {
	c, err := trained.OpenCheckpoint(path)
	if err != nil {
		return digest, err
	}
	return t.resumeFrom(c, path)
}

// resumeFrom is resume of an open checkpoint, which it closes.
func (t *Trainer) resumeFrom(c *trained.Snapshot, name string) (digest [sha256.Size]byte, err error) {
	digest = c.File.Digest()
	if err := errors.Join(t.Adopt(c), c.Close()); err != nil {
		return digest, fmt.Errorf("the training can't go on from the checkpoint %s, which is left as it is: %w", name, err)
	}
	return digest, nil
}

// Adopt goes on from what a checkpoint holds.
func (t *Trainer) Adopt(c *trained.Snapshot) error {
	if err := t.fits(c); err != nil {
		return err
	}
	rows := make([]rowsOfModel, len(t.Learners))
	for i, l := range t.Learners {
		var err error
		if rows[i], err = l.rows(c); err != nil {
			return err
		}
	}
	for i, l := range t.Learners {
		l.Adopt(&c.Models[i], &rows[i])
	}
	t.Checkpoints.Adopt(t.Place())
	t.adopted = true
	return nil
}

// startFrom has all models start from the weights that the recipe names, if it names some. A run
// that goes on from a checkpoint has learned from them already, and does not need them any more.
// All nodes of a run decide alike, once they have met.
func (t *Trainer) startFrom(ctx context.Context) error {
	from := t.Recipe.From
	if from == nil || t.adopted {
		return nil
	}
	if t.Options.Weights == nil {
		return fmt.Errorf("the training starts from the model of job %s, which can't be had here", from.Job)
	}
	weights, err := t.Options.Weights(ctx, *from)
	if err != nil {
		return fmt.Errorf("start from the model of job %s: %w", from.Job, err)
	}
	if trained.Hash(weights) != from.Weights {
		return fmt.Errorf("the model of job %s has other weights than when this job was created, as if that job had gone on since: start another job from it", from.Job)
	}
	for _, l := range t.Learners {
		if len(weights) != l.Model.Size() {
			return fmt.Errorf("the model of job %s has %d weights, and this job's %d: start another job with the model of that one", from.Job, len(weights), l.Model.Size())
		}
		t.Device.Write32(l.Weights, weights)
	}
	return nil
}

// rowsOfModel are a checkpoint's rows of one model.
type rowsOfModel struct {
	trained.Rows
	extras [][][]float32 // of each of the learner's
}

// rows reads the rows of a model. It changes nothing.
func (t *Learner) rows(c *trained.Snapshot) (r rowsOfModel, err error) {
	var moments []string
	for _, m := range t.Optimizer.Moments() {
		moments = append(moments, m.Name)
	}
	if r.Rows, err = c.Rows(t.Index, t.Model.Params(), t.Model.Size(), moments); err != nil {
		return r, err
	}
	for _, extra := range t.Extras {
		rows, err := extra.Read(c.File, c.Models[t.Index].State.Step)
		if err != nil {
			return r, err
		}
		r.extras = append(r.extras, rows)
	}
	return r, nil
}

// Adopt sets the learner to a checkpoint's state of the model.
func (t *Learner) Adopt(s *trained.Standing, rows *rowsOfModel) {
	t.At, t.History = s.State, s.History
	t.At.Early = t.Recipe.Patience > 0 && t.At.Waited >= t.Recipe.Patience
	t.best = append(t.best[:0], rows.Best...)
	t.Optimizer.SetSteps(s.Updates)
	if t.At.Diverged != nil {
		return // its last weights are of no use
	}
	t.Run.Device.Write32(t.Weights, rows.Last[0])
	for i, m := range t.Optimizer.Moments() {
		t.Run.Device.Write32(m.Row, rows.Last[1+i])
	}
	for i, extra := range t.Extras {
		extra.Adopt(rows.extras[i], s.State.Step)
	}
}

// fits returns an error unless a checkpoint is one of this run.
func (t *Trainer) fits(c *trained.Snapshot) error {
	if err := recipe.SameSweep(t.Recipe, c.Recipe, t.Options.Strategies.Declared().Same); err != nil {
		return err
	}
	return c.Fits(&t.Data.About, t.Options.Dataset, t.stepsOfEpoch())
}

// stepsOfEpoch returns how many steps an epoch has.
func (t *Trainer) stepsOfEpoch() int {
	n := len(t.Data.Training)
	if t.Recipe.Batch == 0 {
		return 1
	}
	return (n + t.Recipe.Batch - 1) / t.Recipe.Batch
}
