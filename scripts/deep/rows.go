package main

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// chunks is how many the vertices of each graph are in, where a row does not say
// otherwise: four times as many as the published runs on four machines had stages.
const chunks = 16

// A subject is one deep model on one graph.
type subject struct {
	table  string
	graph  string
	title  string
	model  string
	recipe train.Recipe
}

// A way is how it is trained.
type way struct {
	name    string
	sharing strategy.Settings
}

// A row is a line of a table.
type row struct {
	subject
	way
}

func (r row) id() string {
	return fmt.Sprintf("%s/%s/%s-%d/%s", r.table, r.graph, r.recipe.Model.Model, r.recipe.Model.Layers, r.name)
}

// whole is its recipe with how it is shared.
func (r row) whole() train.Recipe {
	w := r.recipe
	w.Sharing = r.sharing
	return w
}

// exact is what the others are put beside: graph parallelism, which has the gradient of
// one machine.
var exact = way{"graph", strategy.Settings{Strategy: strategy.Graph, Pipe: strategy.PipeSettings{Ways: 4}}}

// piped is a way of pipe. What it comes to does not depend on its stages, so it is trained
// with one. What forward makes is kept for backward, which changes no bit.
func piped(name string, p strategy.PipeSettings) way {
	if p.Chunks == 0 {
		p.Chunks = chunks
	}
	p.Keep = true
	return way{name, strategy.Settings{Strategy: strategy.Pipe, Pipe: p}}
}

// The tables, in the order of their importance.
const (
	beside    = "beside"    // pipe beside graph
	failing   = "failing"   // where the published method fails
	technique = "technique" // what each of its techniques does
)

// ways of each table.
var ways = map[string][]way{
	beside: {exact, piped("pipe, W=1", strategy.PipeSettings{}), piped("pipe, W=2", strategy.PipeSettings{Ways: 2})},
	failing: {
		exact,
		piped("pipe, W=1, as published", strategy.PipeSettings{Histories: strategy.HistoriesZeros}),
		piped("pipe, W=1", strategy.PipeSettings{}),
		piped("pipe, W=2", strategy.PipeSettings{Ways: 2}),
		piped("pipe, W=1, 4 chunks", strategy.PipeSettings{Chunks: 4}),
		piped("pipe, W=1, once", strategy.PipeSettings{Single: true}),
	},
	technique: {
		exact,
		piped("all, as published", strategy.PipeSettings{Histories: strategy.HistoriesZeros}),
		piped("no 1 (fixed order)", strategy.PipeSettings{Histories: strategy.HistoriesZeros, Ordered: true}),
		piped("no 2 (histories of the last epoch)", strategy.PipeSettings{Histories: strategy.HistoriesZeros, Period: 1}),
		piped("no 3 (gradients of the last epoch)", strategy.PipeSettings{Histories: strategy.HistoriesZeros, KeepGradients: true}),
		piped("none", strategy.PipeSettings{Histories: strategy.HistoriesZeros, Ordered: true, Period: 1, KeepGradients: true}),
		piped("all, warm start", strategy.PipeSettings{Histories: strategy.HistoriesLeft}),
		piped("all, histories made (default)", strategy.PipeSettings{}),
	},
}

// subjects are the models and graphs. Rates and epochs are those with which graph learns
// in minutes.
func subjects() (list []subject) {
	add := func(table, graph, model string, layers int) {
		g := graphs[graph]
		r := train.DefaultRecipe(model)
		r.Model.Layers, r.Model.Hidden, r.Features = layers, 64, g.features
		r.Optimizer.WeightDecay, r.Rate, r.Epochs, r.EvalEvery = g.decay, g.rate, g.epochs, g.every
		list = append(list, subject{table, graph, g.title, fmt.Sprintf("%s, %d layers", names[model], layers), r})
	}
	for _, graph := range []string{"cora", "coauthor_cs", "amazon_computers"} {
		for _, model := range []string{"gcnii", "resgcn"} {
			add(beside, graph, model, 16)
		}
	}
	for _, layers := range []int{32, 8} {
		add(failing, "cora", "gcn", layers)
	}
	add(technique, "cora", "gcnii", 16)
	return list
}

var names = map[string]string{"gcn": "GCN", "gcnii": "GCNII", "resgcn": "ResGCN+"}

// graphs are those there are, with what suits them.
var graphs = map[string]struct {
	title, features string
	decay, rate     float64
	epochs, every   int
}{
	"cora":             {"Cora", "row", 5e-4, 0.01, 200, 5},
	"coauthor_cs":      {"CS", "none", 5e-5, 0.01, 100, 5},
	"amazon_computers": {"Computers", "none", 5e-5, 0.01, 100, 5},
}
