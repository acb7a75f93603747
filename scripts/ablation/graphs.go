package main

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// subject is a graph with the parameters of all runs on it.
type subject struct {
	graph, title string
	large        bool    // rows with few insights are left out
	slow         bool    // runs take minutes, so that only shallow models of the first table are trained
	batch        int     // a quarter of the training vertices, so that a step does not see all data
	cap          int     // rows of a sampled halo: a fraction of a group's halo
	plainRate    float64 // the rate at which SGD learns: with a higher one, even a single machine fails
}

// subjects returns the graphs.
func subjects() []subject {
	return []subject{
		{"cora", "Cora", false, false, 35, 40, 0.1},
		{"citeseer", "CiteSeer", false, false, 30, 50, 0.03},
		{"amazon_photo", "Photo", true, false, 1148, 300, 0},
		{"coauthor_cs", "CS", true, true, 2750, 500, 0},
		{"amazon_computers", "Computers", true, true, 2063, 500, 0},
	}
}

// shape is a kind of model and its depth.
type shape struct {
	model  string
	layers int
}

func (m shape) String() string { return fmt.Sprintf("%s %d", m.model, m.layers) }

// shapes returns those of the first table. The second table has the usual one only.
func shapes() (all []shape) {
	for _, layers := range []int{2, 4} {
		for _, model := range []string{"sage", "gcn", "gat"} {
			all = append(all, shape{model, layers})
		}
	}
	return all
}

var usual = shape{"sage", 2}

// recipe returns a quick recipe by which one machine learns well. Without LayerNorm, the
// accuracy of deep models, and of all models on large graphs, depends more on the seed
// than on which data a group sees.
func (s subject) recipe(m shape) recipe.Recipe {
	r := recipe.DefaultRecipe(m.model)
	runs.Follow(&r, 1)
	r.Batch, r.Features = s.batch, "row"
	r.Model.Layers, r.Model.Hidden = m.layers, 32
	if m.model == "gat" {
		r.Model.Hidden, r.Model.Heads = 8, 4
	}
	r.Fanouts = []int{10, 10}
	deep := m.layers > 2
	if deep || s.large {
		r.Model.Norm, r.Model.Head = nn.NormLayer, nn.HeadLinear
	}
	if deep {
		r.Fanouts, r.Model.Residual = []int{5, 5, 5, 5}, s.large
	}
	if deep && !s.large {
		r.Rate = 0.003
		if m.model != "gat" {
			r.Model.Hidden = 64
		}
	}
	if s.large {
		r.Features, r.Rate, r.Model.Dropout, r.Optimizer.WeightDecay = "binary-row", 0.005, 0.3, 5e-5
	}
	r.Model.Resolve()
	return r
}
