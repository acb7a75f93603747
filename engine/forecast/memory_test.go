package forecast_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// The memory of a forecast is about what the nodes of a job announce, whatever the
// strategy.
func TestMemoryIsThatOfARun(t *testing.T) {
	const within = 0.15
	src, err := generate.New(generate.Options{Kind: "sbm", Vertices: 20_000, Edges: 300_000, Features: 100, Classes: 8, Communities: 64, Inside: 0.9, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	shards := traintest.Cut(t, src, 16)
	for model, nodes := range map[string]int{"gcn": 2, "sage": 4, "gat": 3} {
		{
			for _, of := range []strategy.Settings{
				strategy.Given("leap"), strategy.Given("leap", "topology=sharded"), strategy.Given("centric"), strategy.Given("local"),
				strategy.Given("p3"), strategy.Given("grappa", "grappa.period=1"), strategy.Given("graph"), strategy.Given("pipe", "pipe.period=1"),
			} {
				if model == "gat" && of.Strategy != "p3" {
					continue
				}
				r := traintest.Small(model)
				r.Model.Layers, r.Model.Hidden, r.Batch, r.Fanouts = 2, 64, 2048, []int{10, 10}
				if of.Strategy == "graph" || of.Strategy == "pipe" {
					r = traintest.FullGraph(model, 2)
					r.Model.Hidden = 64
				}
				r.Epochs, r.EvalEvery, r.Sharing = 2, 1<<20, bringing(of)
				least := 1 - within
				if of.Strategy == "grappa" { // nodes bound what brings edges by more than comes here
					least = 0.6
				}
				ratio, what := memoryOf(t, r, shards, nodes)
				t.Log(what)
				if ratio < least || ratio > 1+within {
					t.Error(what)
				}
			}
		}
	}
}

// memoryOf returns the memory of a forecast in the measure of what the nodes of a job announce, both
// without the program's own.
func memoryOf(t *testing.T, r recipe.Recipe, shards []*graph.Shard, nodes int) (ratio float64, what string) {
	t.Helper()
	place := forecast.Even(len(shards), 0)
	owners, _ := place(nodes)
	var mu sync.Mutex
	said := uint64(0)
	dir := t.TempDir()
	for node := range nodes {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprint(node)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := traintest.NewMesh(nodes, owners).Run(t.Context(), r, shards, train.Options{Dataset: "d", Strategies: strategies.All, Announce: func(f train.Forecast) {
		mu.Lock()
		defer mu.Unlock()
		said = max(said, f.Arenas)
	}}, func(node int) string { return filepath.Join(dir, fmt.Sprint(node)) })
	if err != nil {
		t.Fatal(err)
	}
	g, err := dataset.Open(shards, r.Split, r.Features)
	if err != nil {
		t.Fatal(err)
	}
	linked(t, g, &r)
	rows, err := forecast.Make(t.Context(), &forecast.Subject{Recipe: &r, Graph: forecast.Of(g), Place: place}, strategyOf(r.Sharing.Strategy), []int{nodes}, rates, func(forecast.Row) {})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	ratio = float64(rows[0].Memory-budget.Program) / float64(said-budget.Program)
	return ratio, fmt.Sprintf("%s on %d nodes by %v: %s, and the nodes say %s: %.2fx beside the program", r.Model.Model, nodes, r.Sharing, budget.Format(rows[0].Memory), budget.Format(said), ratio)
}

// So is that of a job that learns rows, which each node has all of, or those of some shards.
func TestMemoryOfLearntRows(t *testing.T) {
	src, err := generate.New(generate.Options{Kind: "sbm", Vertices: 20_000, Edges: 300_000, Classes: 8, Communities: 64, Inside: 0.9, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	shards := traintest.Cut(t, src, 16)
	for _, at := range []string{recipe.AtAll, recipe.AtOwners} {
		for _, nodes := range []int{2, 4} {
			r := traintest.Small("sage")
			r.Model.Layers, r.Batch, r.Fanouts, r.Embeddings, r.EmbeddingsAt = 2, 256, []int{10, 10}, 100, at
			r.Epochs, r.EvalEvery, r.Sharing = 2, 1<<20, bringing(strategy.Given("leap"))
			ratio, what := memoryOf(t, r, shards, nodes)
			if t.Log(at, what); ratio < 0.85 || ratio > 1.15 {
				t.Error(at, what)
			}
		}
	}
}

// Nodes that have a part of the rows each keep what the weights were before an update. Two have all rows, so
// that they need no less than if each had all by itself.
func TestMemoryOfWeightsThatCanBeTakenBack(t *testing.T) {
	src, err := generate.New(generate.Options{Kind: "sbm", Vertices: 500, Edges: 2000, Classes: 8, Communities: 64, Inside: 0.9, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	shards := traintest.Cut(t, src, 4)
	g, err := dataset.Open(shards, 0, "auto")
	if err != nil {
		t.Fatal(err)
	}
	r := traintest.Small("gcn")
	r.Model.Layers, r.Model.Hidden, r.Batch, r.Fanouts, r.Embeddings, r.Sharing = 3, 2048, 16, []int{2, 2, 2}, 4, bringing(strategy.Given("leap"))
	need := map[string]uint64{}
	for _, at := range []string{recipe.AtAll, recipe.AtOwners} {
		r.EmbeddingsAt = at
		rows, err := forecast.Make(t.Context(), &forecast.Subject{Recipe: &r, Graph: forecast.Of(g), Place: forecast.Even(len(shards), 0)}, strategyOf("leap"), []int{2}, rates, func(forecast.Row) {})
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		need[at] = rows[0].Memory
	}
	m, err := r.NewModel(g.About.Features+r.Embeddings, g.About.Classes)
	if err != nil {
		t.Fatal(err)
	}
	if more := need[recipe.AtOwners] - need[recipe.AtAll]; more < 4*4*uint64(m.Size()) || more > 5*4*uint64(m.Size()) {
		t.Errorf("%d bytes more for the marks of %d weights", more, m.Size())
	}
}
