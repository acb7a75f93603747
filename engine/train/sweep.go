package train

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// mostModels is how many a sweep has at most. What each of them says of itself must find
// room in the head of a checkpoint.
const mostModels = 64

// checkSweep is Check for the models of a sweep: each by itself, and all of them together.
func (r *Recipe) checkSweep(about About) error {
	switch {
	case len(r.Sweep) > mostModels:
		return fmt.Errorf("--sweep makes %d models, and one job trains at most %d: start several jobs", len(r.Sweep), mostModels)
	case r.Sharing.Strategy == strategy.P3 || strategy.Piped(r.Sharing.Strategy):
		return r.Sharing.CheckSweep(r.Sharing.Strategy)
	case r.Sharing.Strategy == strategy.Grappa && r.Sharing.Grappa.OnPlateau():
		return errors.New("--sweep: with --set grappa.switch=plateau each model would turn to other shards at another time, and all train on the same batches: leave one of the two out")
	}
	for i := range r.Sweep {
		of := &r.Sweep[i].Recipe
		if len(of.Sweep) > 0 {
			return fmt.Errorf("--sweep: model %d is a sweep itself", i)
		}
		if err := of.Check(about); err != nil {
			return err
		}
		if err := r.checkBatches(of); err != nil {
			return err
		}
	}
	return nil
}

// checkBatches says what keeps a model from being trained on the batches of a recipe, or
// from being compared with its model.
func (r *Recipe) checkBatches(of *Recipe) error {
	a, err := nn.New(r.Model, 1, 1)
	if err != nil {
		return err
	}
	b, err := nn.New(of.Model, 1, 1)
	if err != nil {
		return err
	}
	if r.Model.Model != of.Model.Model && a.Hops() != b.Hops() {
		return fmt.Errorf("--sweep model: a %s of %s and a %s of %s can't train on the same batches: give --layers, so that all have as many, or start one job for each value",
			r.Model.Model, count(a.Hops(), "hop"), of.Model.Model, count(b.Hops(), "hop"))
	}
	const batches = "all models of a sweep train on the same batches"
	for _, s := range []struct {
		name, why string
		same      bool
	}{
		{"batch", batches, r.Batch == of.Batch},
		{"fanout", batches, slices.Equal(r.Fanouts, of.Fanouts)},
		{"seed", batches, r.Seed == of.Seed},
		{"split", batches, r.Split == of.Split},
		{"normalize-features", "all models of a sweep read the same features", r.Features == of.Features},
		{"epochs", "all models of a sweep train side by side", r.Epochs == of.Epochs},
		{"eval-every", "all models of a sweep train side by side", r.EvalEvery == of.EvalEvery},
		{"train.loss", "the losses of all models of a sweep are compared", r.Loss == of.Loss},
		{"train.metric", "all models of a sweep are compared by it", r.Metric == of.Metric},
		{"strategy", "all models of a sweep share the nodes in one way", reflect.DeepEqual(r.Sharing, of.Sharing)},
		{"layers", fmt.Sprintf("a model of %s and one of %s can't train on the same batches", count(a.Hops(), "hop"), count(b.Hops(), "hop")), a.Hops() == b.Hops()},
		{"model", "all models of a sweep read the same blocks, and these models weigh edges, or see each vertex itself, in different ways", a.Form() == b.Form()},
	} {
		if !s.same {
			return fmt.Errorf("--sweep %s: %s: start one job for each value", s.name, s.why)
		}
	}
	return nil
}
