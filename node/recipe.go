package node

import (
	"cmp"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/node/api"
)

const defaultModel = "gcn"

// recipeOf makes a request complete: what it leaves out is as is usual for the
// model.
func recipeOf(r api.TrainRequest) (train.Recipe, error) {
	recipe := train.DefaultRecipe(cmp.Or(r.Model, defaultModel))
	m := &recipe.Model
	given(&m.Layers, r.Layers)
	given(&m.Hidden, r.Hidden)
	given(&m.Heads, r.Heads)
	given(&m.Dropout, r.Dropout)
	given(&m.Residual, r.Residual)
	m.Norm = cmp.Or(r.Norm, m.Norm)
	recipe.Optimizer.Kind = cmp.Or(r.Optimizer, recipe.Optimizer.Kind)
	recipe.Features = cmp.Or(r.Features, recipe.Features)
	given(&recipe.Optimizer.WeightDecay, r.WeightDecay)
	given(&recipe.Rate, r.Rate)
	given(&recipe.Epochs, r.Epochs)
	given(&recipe.Batch, r.Batch)
	given(&recipe.Patience, r.Patience)
	given(&recipe.EvalEvery, r.EvalEvery)
	given(&recipe.Split, r.Split)
	given(&recipe.Seed, r.Seed)
	if len(r.Fanout) > 0 {
		recipe.Fanouts = r.Fanout
	}
	var said []string
	for _, s := range r.Set {
		if err := recipe.Set(s.Key, s.Value); err != nil {
			return recipe, err
		}
		said = append(said, s.Key)
	}
	m.Resolve(said...)
	return recipe, nil
}

// TrainSettings lists what a request's settings may be.
func TrainSettings() []nn.Option { return train.Settings() }

func given[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

// aboutOf is a dataset as a recipe is held against it.
func aboutOf(d plan.Dataset) train.About {
	a := train.About{Vertices: d.About.Vertices, Edges: d.About.Edges, Features: d.About.Features, Classes: d.About.Classes}
	for _, s := range d.About.Splits {
		a.Splits = append(a.Splits, graph.SplitInfo{Train: s.Train, Val: s.Val, Test: s.Test})
	}
	return a
}
