package main

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/train"
)

// A subject is a graph, and what all that is trained on it shares.
type subject struct {
	graph, title string
	large        bool // what says little is left out
	slow         bool // deep models want twice the epochs or more, and most come to nothing that hear themselves past each layer
	seeds        int
	batch        int     // a quarter of the training vertices, so that a step does not see all there is
	cap          int     // rows of a sampled halo: a fraction of what a group would have
	plainRate    float64 // at which SGD learns: above it, it comes to nothing on one machine
}

// subjects are the graphs.
func subjects() []subject {
	return []subject{
		{"cora", "Cora", false, false, 10, 35, 40, 0.1},
		{"citeseer", "CiteSeer", false, false, 10, 30, 50, 0.03},
		{"amazon_photo", "Photo", true, false, 3, 1148, 300, 0},
		{"coauthor_cs", "CS", true, false, 3, 2750, 500, 0},
		{"amazon_computers", "Computers", true, true, 3, 2063, 500, 0},
	}
}

// A shape is a kind of model and how deep it is.
type shape struct {
	model  string
	layers int
}

func (m shape) String() string { return fmt.Sprintf("%s %d", m.model, m.layers) }

// shapes are those of the first table; the second has the usual one alone.
func shapes() (all []shape) {
	for _, layers := range []int{2, 4} {
		for _, model := range []string{"sage", "gcn", "gat"} {
			all = append(all, shape{model, layers})
		}
	}
	return all
}

var usual = shape{"sage", 2}

// recipe is quick, and such that one machine learns well by it: without LayerNorm deep
// models, and all on large graphs, depend on the seed more than on who sees what.
func (s subject) recipe(m shape) train.Recipe {
	r := train.DefaultRecipe(m.model)
	r.Batch, r.Epochs, r.EvalEvery, r.Features = s.batch, 100, 4, "row"
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
		r.Fanouts, r.Model.Residual = []int{5, 5, 5, 5}, s.large && !s.slow
	}
	if deep && !s.large {
		r.Rate = 0.003
		if m.model != "gat" {
			r.Model.Hidden = 64
		}
	}
	if s.large {
		r.Features, r.Rate, r.Model.Dropout, r.Optimizer.WeightDecay = "binary-row", 0.005, 0.3, 5e-5
		r.Epochs, r.EvalEvery = 40, 5
	}
	if deep && s.slow {
		r.Epochs, r.EvalEvery = 80, 10
		if m.model == "gat" {
			r.Epochs = 160 // still learnt at the end of half as many
		}
	}
	r.Model.Resolve()
	return r
}
