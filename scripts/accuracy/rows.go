package main

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// row is one model on one graph: a line of the table.
type row struct {
	graph string
	name  string
	bar   float64 // percent; 0: none
	seeds int
	recipe.Recipe
}

func (r row) id() string { return r.graph + "/" + r.name }

// on returns the row as trained on that many nodes; 0: one.
func (r row) on(nodes int) runs.Row {
	return runs.Row{Name: r.id(), Graph: r.graph, Recipe: r.Recipe, Seeds: r.seeds, Nodes: nodes}
}

// rows returns the recipes with which the bars were published or measured: those of
// Planetoid on its public splits, those of tunedGNN on its 60/20/20 splits, and quick
// ones. Bars of links are those of GAE (arXiv 1611.07308).
func rows() []row {
	var list []row
	for _, p := range []struct {
		graph string
		bars  [3]float64
	}{{"cora", [3]float64{81, 82, 79.5}}, {"citeseer", [3]float64{70, 70, 69.5}}} {
		graph, bars := p.graph, p.bars
		list = append(list,
			row{graph, "GCN", bars[0], 10, planetoid("gcn", 16, 1, 0.01, 0.5)},
			row{graph, "GAT", bars[1], 10, planetoid("gat", 8, 8, 0.005, 0.6)},
			row{graph, "SAGE-mean", bars[2], 10, planetoid("sage", 16, 1, 0.01, 0.5)})
	}
	list = append(list,
		row{"cora", "GCN links", 91, 10, links(32, 16, "row", 0.01, 200)},
		row{"citeseer", "GCN links", 89.5, 10, links(32, 16, "none", 0.003, 60)})
	for _, p := range []struct {
		graph string
		bar   float64
	}{{"amazon_computers", 90}, {"amazon_photo", 94}, {"coauthor_cs", 94}} {
		list = append(list, row{p.graph, "quick GCN", p.bar, 3, quick()})
	}
	const computers, photo, cs = "amazon_computers", "amazon_photo", "coauthor_cs"
	list = append(list,
		row{computers, "quick GCN, LayerNorm", 0, 3, tuned("gcn", 64, 2, 0.5, false, 5e-5, 500)},
		row{photo, "quick GCN, LayerNorm", 0, 3, tuned("gcn", 64, 2, 0.5, false, 5e-5, 500)},
		row{cs, "quick GCN, LayerNorm", 0, 3, tuned("gcn", 64, 2, 0.3, true, 5e-4, 300)},
		row{computers, "tuned GAT", 93, 3, tuned("gat", 64, 2, 0.5, false, 5e-5, 1000)},
		row{computers, "tuned SAGE", 92.5, 3, tuned("sage", 64, 4, 0.3, false, 5e-5, 1000)},
		row{photo, "tuned GAT", 95.5, 3, tuned("gat", 64, 3, 0.5, true, 5e-5, 1000)},
		row{photo, "tuned SAGE", 95.5, 3, tuned("sage", 64, 6, 0.2, true, 5e-5, 1000)},
		row{cs, "tuned GAT", 95.7, 3, tuned("gat", 256, 1, 0.3, true, 5e-4, 1500)},
		row{photo, "tuned GCN", 95.5, 3, tuned("gcn", 256, 6, 0.5, true, 5e-5, 1000)},
		row{cs, "tuned SAGE", 95.7, 3, tuned("sage", 512, 2, 0.5, true, 5e-4, 1500)},
		row{cs, "tuned GCN", 95.7, 3, tuned("gcn", 512, 2, 0.3, true, 5e-4, 1500)},
		row{computers, "tuned GCN", 93, 3, tuned("gcn", 512, 3, 0.5, false, 5e-5, 1000)},
	)
	return list
}

func recipeOf(spec nn.Spec, features string, rate, decay float64, epochs int) recipe.Recipe {
	return recipe.Recipe{
		Model: spec, Optimizer: nn.OptimizerSpec{Kind: "adam", WeightDecay: decay}, Rate: rate, Schedule: recipe.Schedule{Kind: "constant"},
		Epochs: epochs, Features: features, Loss: "softmax", EvalEvery: 1, Metric: "accuracy",
	}
}

// model returns a model with the settings that all recipes share.
func model(kind string, layers, hidden, heads int, dropout float64) nn.Spec {
	s := nn.Spec{Model: kind, Layers: layers, Hidden: hidden, Heads: heads, Dropout: dropout, Norm: "none", Head: "none", Jump: "none", SelfLoops: "auto"}
	switch kind {
	case "sage":
		s.Aggregator = "mean"
	case "gat":
		s.OutHeads, s.Version = 1, 1
	}
	return s
}

func planetoid(kind string, hidden, heads int, rate, dropout float64) recipe.Recipe {
	s := model(kind, 2, hidden, heads, dropout)
	s.InputDropout = dropout
	if kind == "gat" {
		s.AttentionDropout = dropout
	}
	return recipeOf(s, "row", rate, 5e-4, 200)
}

// links returns a recipe of graph autoencoders: a GCN of two layers, whose rows are embeddings of
// so many columns, and their inner products, on 85/5/10 splits of the edges. Its accuracy is the
// area under the ROC curve.
func links(hidden, width int, features string, rate float64, epochs int) recipe.Recipe {
	s := model("gcn", 2, hidden, 1, 0.5)
	s.InputDropout = 0.5
	r := recipeOf(s, features, rate, 0, epochs)
	r.Learn(task.Named("link"))
	r.Links.Width, r.Batch = width, recipe.LinkBatch
	return r
}

func quick() recipe.Recipe {
	return recipeOf(model("gcn", 2, 64, 1, 0.5), "none", 0.01, 5e-5, 200)
}

// tuned returns a recipe of tunedGNN: LayerNorm, self-loops for every model, a linear
// head, and features set to one and divided by their row's sum.
func tuned(kind string, hidden, layers int, dropout float64, residual bool, decay float64, epochs int) recipe.Recipe {
	s := model(kind, layers, hidden, 1, dropout)
	s.Norm, s.Head, s.SelfLoops, s.Residual = "layer", "linear", "on", residual
	return recipeOf(s, "binary-row", 0.001, decay, epochs)
}

// describe returns a short description of a recipe for the table.
func describe(r recipe.Recipe) string {
	s := fmt.Sprintf("%d layers, hidden %d", r.Model.Layers, r.Model.Hidden)
	if r.Model.Heads > 1 {
		s += fmt.Sprintf(" x %d heads", r.Model.Heads)
	}
	s += fmt.Sprintf(", dropout %g, lr %g, decay %g, %d epochs", r.Model.Dropout, r.Rate, r.Optimizer.WeightDecay, r.Epochs)
	if r.Model.Norm == "layer" {
		s += ", LayerNorm"
	}
	if r.Model.Residual {
		s += ", residual"
	}
	if r.Links != nil {
		s += fmt.Sprintf(", embeddings of %d, area under the ROC curve", r.Links.Width)
	}
	return s
}
