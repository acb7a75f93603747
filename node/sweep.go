package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/node/api"
)

// metricKey is the setting by which the models of a sweep are compared.
const metricKey = "train.metric"

// sweptRecipe makes a recipe of a request: of a sweep, one with those of all its models,
// each as complete makes it of what asks for this model alone.
func sweptRecipe(r api.TrainRequest, complete func(api.TrainRequest) (train.Recipe, error)) (train.Recipe, error) {
	if len(r.Sweep) == 0 {
		return complete(r)
	}
	models, err := r.Variants()
	if err != nil {
		return train.Recipe{}, err
	}
	for _, s := range r.Sweep {
		if err := checkSwept(s.Key); err != nil {
			return train.Recipe{}, err
		}
	}
	if err := checkSharing(r); err != nil {
		return train.Recipe{}, err
	}
	var all []train.Variant
	var texts [][]byte
	unused := map[string]int{} // settings, by how many models have no use for them
	for _, m := range models {
		recipe, without, err := completeUsed(r, m, complete)
		if err != nil {
			return train.Recipe{}, err
		}
		for _, u := range without {
			if unused[u.Key]++; unused[u.Key] == len(models) {
				return train.Recipe{}, fmt.Errorf("%v: %w", m, u)
			}
		}
		text, err := json.Marshal(recipe)
		if err != nil {
			return train.Recipe{}, fmt.Errorf("write the recipe of %v: %w", m, err)
		}
		if i := slices.IndexFunc(texts, func(o []byte) bool { return bytes.Equal(o, text) }); i >= 0 {
			return train.Recipe{}, fmt.Errorf("%v is the same as %v: leave one of these values out", m, models[i])
		}
		texts = append(texts, text)
		all = append(all, train.Variant{Params: m.Params, Recipe: recipe})
	}
	recipe := all[0].Recipe
	recipe.Sweep = all
	return recipe, nil
}

// checkSharing looks at how the nodes are to share a sweep, before the models are looked at:
// what is wrong with one of them might advise what no sweep can have.
func checkSharing(r api.TrainRequest) error {
	var shared strategy.Settings
	for _, s := range r.Set {
		if _, err := shared.Set(s.Key, s.Value); err != nil {
			return fmt.Errorf("--set %w", err)
		}
	}
	return shared.CheckSweep(r.Strategy)
}

// completeUsed makes the recipe of one model of a sweep, without the settings of all models
// that mean nothing to this one: to others they may.
func completeUsed(r api.TrainRequest, m api.Variant, complete func(api.TrainRequest) (train.Recipe, error)) (train.Recipe, []*nn.Unused, error) {
	var without []*nn.Unused
	common := slices.Clone(r.Set)
	own := m.Request.Set[len(r.Set):] // of the keys that are swept over
	for {
		m.Request.Set = slices.Concat(common, own)
		recipe, err := complete(m.Request)
		if err == nil {
			return recipe, without, nil
		}
		u, is := errors.AsType[*nn.Unused](err)
		rest := common
		if is {
			rest = slices.DeleteFunc(slices.Clone(common), func(s api.Setting) bool { return s.Key == u.Key })
		}
		if len(rest) == len(common) {
			return train.Recipe{}, nil, fmt.Errorf("%v: %w", m, err)
		}
		common, without = rest, append(without, u)
	}
}

// checkSwept says why models of a sweep can't differ in a key, or that there is none.
func checkSwept(key string) error {
	isKey := func(k strategy.Key) bool { return k.Key == key }
	isOption := func(o nn.Option) bool { return o.Key == key }
	switch {
	case key == metricKey:
		return fmt.Errorf("--sweep can't take %s, by which the models of a job are compared: start one job for each value", key)
	case slices.ContainsFunc(strategy.Keys(), isKey):
		return fmt.Errorf("--sweep can't take %s, which is the same for all models of a job, as are their batches: start one job for each value", key)
	case slices.Contains(api.SweptFlags(), key), slices.ContainsFunc(TrainSettings(), isOption):
		return nil
	}
	return fmt.Errorf("--sweep can't take %q, which is no flag that a sweep can take (`hopmesh train start --help` lists flags) and no key that `hopmesh train options` lists", key)
}

// checkRoom says why the plan would not keep a job.
func checkRoom(recipe *train.Recipe, text []byte) error {
	models := max(1, len(recipe.Sweep))
	switch {
	case recipe.Epochs > plan.MaxEpochs:
		return api.Invalid("%d epochs are too many: a job has 1 to %d", recipe.Epochs, plan.MaxEpochs)
	case recipe.Epochs*models > plan.MaxHistory:
		return api.Invalid("%d epochs of %d models are too many: the mesh keeps %d of all jobs, so give at most --epochs %d, or fewer values to --sweep",
			recipe.Epochs, models, plan.MaxHistory, plan.MaxHistory/models)
	case len(text) > plan.MaxRecipe:
		return api.Invalid("what is to be known of %d models takes %d bytes, and the mesh keeps %d of a job: give fewer values to --sweep", models, len(text), plan.MaxRecipe)
	}
	return nil
}

// modelIndex is which model of a job is meant: the best, if nobody says.
func modelIndex(j plan.Job, asked *int) (int, error) {
	switch models := j.Models(); {
	case asked == nil:
		return train.BestModel, nil
	case models == 1:
		return 0, api.Invalid("job %s trains one model and no sweep: leave --model-index out", j.ID)
	case *asked < 0 || *asked >= models:
		return 0, api.Invalid("--model-index is %d, and job %s has the models 0 to %d: `hopmesh train show %s` lists them", *asked, j.ID, models-1, j.ID)
	}
	return *asked, nil
}

// modelsOf tells of each model of a sweep. Of those that have diverged the node that runs
// the job may know more than the plan.
func modelsOf(j plan.Job, recipe *train.Recipe, diverged []string) []api.JobModel {
	if len(diverged) != len(j.Bests) {
		diverged = j.Diverged
	}
	list := []api.JobModel{}
	for i := range j.Bests {
		m := api.JobModel{Params: map[string]string{}, Best: bestOf(j, j.Bests[i], i), History: []api.JobEpoch{}}
		if i < len(recipe.Sweep) && recipe.Sweep[i].Params != nil {
			m.Params = recipe.Sweep[i].Params
		}
		if i < len(diverged) {
			m.Diverged = diverged[i]
		}
		for _, e := range j.Of(i) {
			m.History = append(m.History, epochOf(e))
		}
		list = append(list, m)
	}
	return list
}
