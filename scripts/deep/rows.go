package main

import (
	"cmp"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// chunks is the default number of chunks of a graph's vertices: four times the number of
// stages of the published runs on four machines.
const chunks = 16

// subject is one deep model on one graph.
type subject struct {
	table  string
	graph  string
	title  string
	model  string
	recipe recipe.Recipe
}

// way is how a subject is trained.
type way struct {
	name    string
	sharing strategy.Settings
}

// row is a line of a table.
type row struct {
	subject
	way
}

// id is the same in all tables, so that tables share runs.
func (r row) id() string { return r.subject.id() + "/" + r.name }

func (s subject) id() string {
	return fmt.Sprintf("%s/%s-%d", s.graph, s.recipe.Model.Model, s.recipe.Model.Layers)
}

// run returns the row for that many seeds; 0: as the protocol says.
func (r row) run(seeds int) runs.Row {
	recipe := r.recipe
	recipe.Sharing = r.sharing
	return runs.Row{Name: r.id(), Graph: r.graph, Cut: build.Options{Shards: chunks, Partitioner: "multilevel"}, Recipe: recipe, Seeds: cmp.Or(seeds, runs.Seeds)}
}

// rows returns all lines, of that many epochs each; 0: as the protocol says.
func rows(epochs int) (list []row) {
	for _, s := range subjects() {
		if epochs > 0 {
			s.recipe.Epochs = epochs
		}
		for _, w := range ways[s.table] {
			list = append(list, row{s, w})
		}
	}
	return list
}

// exact is the baseline: graph parallelism, which has the gradient of one machine.
var exact = way{"graph", strategy.Given(pipe.GraphName, "pipe.ways=4")}

// piped returns a way that trains by pipe. The result does not depend on the number of
// stages, so it uses one. It keeps the activations of forward for backward, which does
// not change the result.
func piped(name string, values ...string) way {
	usual := []string{fmt.Sprintf("pipe.chunks=%d", chunks), "pipe.recompute=off"}
	return way{name, strategy.Given(pipe.Name, append(usual, values...)...)}
}

// The tables.
const (
	beside    = "beside"    // pipe beside graph
	failing   = "failing"   // where the published method fails
	technique = "technique" // the effect of each of its techniques
)

// ways lists the ways of each table.
var ways = map[string][]way{
	beside: {exact, piped("pipe W=1"), piped("pipe W=2", "pipe.ways=2")},
	failing: {
		exact,
		piped("pipe W=1 as published", "pipe.histories=zeros"),
		piped("pipe W=1"),
		piped("pipe W=2", "pipe.ways=2"),
		piped("pipe W=1 of 4 chunks", "pipe.chunks=4"),
	},
	technique: {
		exact,
		piped("all as published", "pipe.histories=zeros"),
		piped("no 1 (fixed order)", "pipe.histories=zeros", "pipe.shuffle=off"),
		piped("no 2 (histories of the last epoch)", "pipe.histories=zeros", "pipe.period=1"),
		piped("no 3 (gradients of the last epoch)", "pipe.histories=zeros", "pipe.gradients=kept"),
		piped("none", "pipe.histories=zeros", "pipe.shuffle=off", "pipe.period=1", "pipe.gradients=kept"),
		piped("all with a warm start", "pipe.histories=left"),
		piped("pipe W=1"),
	},
}

// subjects returns the models and graphs, in the order in which they are trained.
func subjects() (list []subject) {
	add := func(table, graph, model string, layers int) {
		g := graphs[graph]
		r := recipe.DefaultRecipe(model)
		r.Model.Layers, r.Model.Hidden, r.Features = layers, 64, g.features
		r.Optimizer.WeightDecay, r.Rate = g.decay, g.rate
		runs.Follow(&r, 1)
		list = append(list, subject{table, graph, g.title, fmt.Sprintf("%s, %d layers", names[model], layers), r})
	}
	for _, graph := range []string{"cora", "coauthor_cs"} {
		for _, model := range []string{"gcnii", "resgcn"} {
			add(beside, graph, model, 16)
		}
	}
	add(technique, "cora", "gcnii", 16)
	add(failing, "cora", "gcn", 8)
	add(failing, "cora", "gcn", 32) // none of them learns anything
	return list
}

var names = map[string]string{"gcn": "GCN", "gcnii": "GCNII", "resgcn": "ResGCN+"}

// graphs lists the graphs with their parameters.
var graphs = map[string]struct {
	title, features string
	decay, rate     float64
}{
	"cora":        {"Cora", "row", 5e-4, 0.01},
	"coauthor_cs": {"CS", "none", 5e-5, 0.01},
}
