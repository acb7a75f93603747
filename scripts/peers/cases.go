package main

import (
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
)

// bed is a graph and the tasks on it.
type bed struct {
	name string
	// file is a graph in a file; if it is empty, made says what to generate.
	file       string
	made       generate.Options
	undirected bool
	row        bool // features are divided by their row's sum
	cases      []task
}

// task is one model, which every framework trains.
type task struct {
	name    string
	model   string
	layers  int
	hidden  int
	dropout float64
	rate    float64
	decay   float64
	batch   int
	fanouts []int
	epochs  int  // of each of the three rounds, if one batch covers the whole graph
	steps   int  // of each round, for frameworks that are slow
	score   bool // both sides train to the end and their accuracy is compared
	bf16    bool // hopmesh once more, with BF16 products
	bar     float64
	bar16   float64
}

// sage returns the sampled GraphSAGE of the tables.
func sage(hidden, steps int, bar float64) task {
	return task{
		model: "sage", layers: 3, hidden: hidden, rate: 0.003, batch: 1024, fanouts: []int{15, 10, 5}, epochs: 1, steps: steps,
		bf16: hidden > 64, bar: bar, bar16: 0.4,
	}
}

// beds returns the graphs and tasks, which are fixed before anything is timed.
func beds(graphs string) []bed {
	full := func(name string, hidden, epochs int, dropout, decay float64, bar float64) task {
		return task{name: name, model: "gcn", layers: 2, hidden: hidden, dropout: dropout, rate: 0.01, decay: decay, epochs: epochs, score: true, bar: bar}
	}
	return []bed{
		{name: "Cora", row: true, cases: []task{full("GCN, hidden 16, all at once", 16, 200, 0.5, 5e-4, 0.33)}},
		{name: "Amazon Computers", file: graphs + "/amazon_computers.npz", cases: []task{full("GCN, hidden 64, all at once", 64, 70, 0.5, 5e-5, 0.33)}},
		{name: "like ogbn-arxiv, synthetic", made: generate.Options{Preset: "arxiv", Seed: 1}, undirected: true, cases: []task{sage(64, 20, 0.33), sage(256, 10, 0.6)}},
		{name: "ogbn-products' degree, 0.2 of its size, synthetic", made: generate.Options{Preset: "products", Scale: 0.2, Seed: 1},
			cases: []task{sage(64, 20, 0.33), sage(256, 10, 0.6)}},
	}
}

// recipe returns the task's recipe for hopmesh.
func (t task) recipe(row, bf16 bool, epochs int) recipe.Recipe {
	input := 0.0
	if t.dropout > 0 {
		input = t.dropout
	}
	how := "none"
	if row {
		how = "row"
	}
	spec := nn.Spec{
		Model: t.model, Layers: t.layers, Hidden: t.hidden, Heads: 1, Dropout: t.dropout, InputDropout: input,
		Norm: "none", Head: "none", Jump: "none", SelfLoops: "auto",
	}
	if t.model == "sage" {
		spec.Aggregator = "mean"
	}
	return recipe.Recipe{
		Model: spec, Optimizer: nn.OptimizerSpec{Kind: "adam", WeightDecay: t.decay}, Rate: t.rate,
		Schedule: recipe.Schedule{Kind: "constant"}, Epochs: epochs, Batch: t.batch, Fanouts: t.fanouts,
		Features: how, Loss: "softmax", EvalEvery: epochs, Metric: "accuracy", Seed: 1, BF16: bf16,
	}
}
