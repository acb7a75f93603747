package recipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/node/api"
)

// metricKey is the setting by which the models of a sweep are compared.
const metricKey = "train.metric"

// swept returns the recipe of a request. The recipe of a sweep holds the recipes of all
// its models. Each is what complete returns for the request for that model alone.
func swept(r api.TrainRequest, complete func(api.TrainRequest) (recipe.Recipe, error)) (recipe.Recipe, error) {
	if len(r.Sweep) == 0 {
		return complete(r)
	}
	models, err := r.Variants()
	if err != nil {
		return recipe.Recipe{}, err
	}
	for _, s := range r.Sweep {
		if err := checkSwept(s.Key); err != nil {
			return recipe.Recipe{}, err
		}
	}
	if err := checkSharing(r); err != nil {
		return recipe.Recipe{}, err
	}
	var all []recipe.Variant
	var texts [][]byte
	unused := map[string]int{} // by setting: how many models don't use it
	for _, m := range models {
		of, without, err := completeUsed(r, m, complete)
		if err != nil {
			return recipe.Recipe{}, err
		}
		for _, u := range without {
			if unused[u.Key]++; unused[u.Key] == len(models) {
				return recipe.Recipe{}, fmt.Errorf("%v: %w", m, u)
			}
		}
		text, err := json.Marshal(of)
		if err != nil {
			return recipe.Recipe{}, fmt.Errorf("write the recipe of %v: %w", m, err)
		}
		if i := slices.IndexFunc(texts, func(o []byte) bool { return bytes.Equal(o, text) }); i >= 0 {
			return recipe.Recipe{}, fmt.Errorf("%v is the same as %v: leave one of these values out", m, models[i])
		}
		texts = append(texts, text)
		all = append(all, recipe.Variant{Params: m.Params, Recipe: of})
	}
	first := all[0].Recipe
	first.Sweep = all
	return first, nil
}

// checkSharing checks the strategy's settings of a sweep before its models are checked.
// Otherwise an error of one model could suggest a setting that no sweep can have.
func checkSharing(r api.TrainRequest) error {
	var shared strategy.Settings
	for _, s := range r.Set {
		if _, err := declared.Set(&shared, s.Key, s.Value); err != nil {
			return err
		}
	}
	return declared.CheckSweep(&shared, r.Strategy)
}

// completeUsed returns the recipe of one model of a sweep. It drops settings of the whole
// sweep that this model does not use, since other models may use them.
func completeUsed(r api.TrainRequest, m api.Variant, complete func(api.TrainRequest) (recipe.Recipe, error)) (recipe.Recipe, []*nn.Unused, error) {
	var without []*nn.Unused
	common := slices.Clone(r.Set)
	own := m.Request.Set[len(r.Set):] // of the keys that are swept over
	for {
		m.Request.Set = slices.Concat(common, own)
		of, err := complete(m.Request)
		if err == nil {
			return of, without, nil
		}
		u, is := errors.AsType[*nn.Unused](err)
		rest := common
		if is {
			rest = slices.DeleteFunc(slices.Clone(common), func(s api.Setting) bool { return s.Key == u.Key })
		}
		if len(rest) == len(common) {
			return recipe.Recipe{}, nil, fmt.Errorf("%v: %w", m, err)
		}
		common, without = rest, append(without, u)
	}
}

// checkSwept returns an error unless models of a sweep may differ in a key.
func checkSwept(key string) error {
	isKey := func(k strategy.Key) bool { return k.Key == key }
	isOption := func(o nn.Option) bool { return o.Key == key }
	switch {
	case key == metricKey:
		return fmt.Errorf("--sweep can't take %s, by which the models of a job are compared: start one job for each value", key)
	case slices.ContainsFunc(declared.Keys(), isKey):
		return fmt.Errorf("--sweep can't take %s, which is the same for all models of a job, as are their batches: start one job for each value", key)
	case slices.Contains(api.SweptFlags(), key), slices.ContainsFunc(Settings(), isOption):
		return nil
	}
	return fmt.Errorf("--sweep can't take %q, which is no flag that a sweep can take (`hopmesh train start --help` lists flags) and no key that `hopmesh train options` lists", key)
}
