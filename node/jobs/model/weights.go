package model

import (
	"context"
	"errors"
	"maps"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/jobs"
	requests "github.com/hopmesh/hopmesh/node/jobs/recipe"
)

// Source reads the model of a job that has ended, from which another one is to start.
func (m *Models) Source(ctx context.Context, id string) (s *requests.Source, err error) {
	_, j, err := m.cfg.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if !j.Ended() {
		return nil, api.Conflict("job %s is %s, so its model may still change: start from it when it has ended, or stop it with `hopmesh train stop %s`", j.ID, j.State, j.ID)
	}
	err = m.withJob(ctx, j, "start", nil, func(_ context.Context, j plan.Job, file modelFile, _ *loan) error {
		w, err := read(file)
		if err != nil {
			return err
		}
		s, err = requests.NewSource(j, w)
		return errors.Join(err, w.Close())
	})
	return s, err
}

// Weights returns the weights that a job starts from: those of the model of a job here or on
// another node. The caller compares their digest.
func (m *Models) Weights(ctx context.Context, from recipe.From) (weights []float32, err error) {
	err = m.with(ctx, from.Job, "start", nil, func(_ context.Context, j plan.Job, file modelFile, _ *loan) error {
		if j.Key != from.Key {
			return api.NotFound("job %s was removed, and there is another one of that name", from.Job)
		}
		w, err := read(file)
		if err != nil {
			return err
		}
		weights = w.Weights
		return w.Close()
	})
	return weights, err
}

// read reads a model with its weights.
func read(file modelFile) (w *trained.Weighed, err error) {
	defer mapped.End(mapped.Guard()) // the checkpoint is mapped
	defer mapped.Caught(&err)
	return trained.ReadWeighed(file.checkpoint, file.index)
}

// Evaluate compares a job's model with the split of its dataset, or of another.
func (m *Models) Evaluate(ctx context.Context, id string, r api.EvaluateRequest) (e api.Evaluation, err error) {
	err = m.with(ctx, id, "evaluation", r.Index, func(ctx context.Context, j plan.Job, file modelFile, l *loan) error {
		d, err := m.datasetOf(j, r.Dataset)
		if err != nil {
			return err
		}
		split := 0
		switch {
		case r.Split != nil:
			split = *r.Split
		case d.ID == j.Dataset:
			split = trained.TrainedSplit
		}
		return m.reading(ctx, d, j, file, l, func(on reading) error {
			of, err := jobs.Evaluate(ctx, file.checkpoint, on.shards, trained.EvaluateOptions{
				Index: file.index, Split: split, ClassNames: d.About.ClassNames, Memory: m.cfg.Memory, Dir: on.folder, Device: m.cfg.Device,
			})
			if err == nil {
				err = on.intact(ctx)
			}
			if err == nil {
				e = evaluation(j, d, of)
			}
			return err
		})
	})
	return e, err
}

// evaluation is what the API has of an evaluation.
func evaluation(j plan.Job, d plan.Dataset, of *trained.Evaluation) api.Evaluation {
	e := api.Evaluation{
		ID: j.ID, Dataset: d.Name, Task: of.Task.Name, Split: of.Split, Epoch: of.Epoch, Metric: of.Metric, Seconds: of.Seconds,
		Counts: api.SplitSizes{Train: uint64(of.Train.Count), Val: uint64(of.Val.Count), Test: uint64(of.Test.Count)},
	}
	for _, part := range []struct {
		of       map[string]float64
		metrics  *map[string]float64
		accuracy **float64
	}{{of.Train.Metrics, &e.Metrics.Train, &e.TrainAccuracy}, {of.Val.Metrics, &e.Metrics.Val, &e.ValAccuracy}, {of.Test.Metrics, &e.Metrics.Test, &e.TestAccuracy}} {
		*part.metrics = map[string]float64{}
		maps.Copy(*part.metrics, part.of)
		if x, has := part.of[task.Accuracy]; has {
			*part.accuracy = &x
		}
	}
	return e
}
