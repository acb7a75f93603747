//go:build long

package main

import (
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A model that was trained on a part of a graph scores within two points on the rest, which it has
// never seen, of what a model scores there that was trained on all: both by the same recipe, both
// scored in the whole graph, on vertices whose labels neither has learned.
func TestUnseenVertices(t *testing.T) {
	const most = 0.02
	cora := planetoid("sage", 64, 1, 0.01, 0.5)
	cora.Epochs = 60
	for _, of := range []struct {
		name, file string
		seeds      uint64
		recipe     recipe.Recipe
	}{
		{"cora", "../../engine/graph/cora/cora.npz", 3, cora},
		// GraphSAGE by the settings of the quick row of this graph.
		{"amazon_photo", "../../engine/graph/read/testdata/amazon_photo.npz", 3, tuned("sage", 64, 2, 0.5, false, 5e-5, 500)},
	} {
		var ofPart, ofAll []float64
		for of.recipe.Seed = range of.seeds {
			part, all := unseen(t, of.file, of.recipe)
			ofPart, ofAll = append(ofPart, part), append(ofAll, all)
		}
		part, deviation := stats.Spread(ofPart)
		all, deviationToo := stats.Spread(ofAll)
		t.Logf("%s: %.2f ± %.2f by a model of a part, %.2f ± %.2f by one of all", of.name, 100*part, 100*deviation, 100*all, 100*deviationToo)
		if part < all-most {
			t.Errorf("%s: a model of a part scores %v on unseen vertices, and one of all %v", of.name, ofPart, ofAll)
		}
	}
}

// unseen returns the accuracies on three twentieths of a graph's vertices, which neither model
// learns: of a model of seven tenths of the graph, and of one of all of it, which learns three
// twentieths more.
func unseen(t *testing.T, file string, r recipe.Recipe) (ofPart, ofAll float64) {
	t.Helper()
	src, err := read.Open(t.Context(), file, read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	draw := func(vertex int) float64 {
		draws := keyed.New(r.Seed, keyed.Split).With(uint64(vertex)).Draws()
		return draws.Float64()
	}
	all := enginetest.Marked(src, func(v int) graph.Mark {
		switch x := draw(v); {
		case x >= 0.85:
			return graph.Unmarked
		case int(1000*x)%10 == 0:
			return graph.Validation
		}
		return graph.Train
	})
	scored := enginetest.Cut(t, enginetest.Marked(src, func(v int) graph.Mark {
		if draw(v) >= 0.85 {
			return graph.Test
		}
		return graph.Unmarked
	}), 4, "")
	score := func(on []*graph.Shard) float64 {
		dir := t.TempDir()
		if _, err := train.Run(t.Context(), r, on, train.Options{Strategies: strategies.All, Dir: dir}); err != nil {
			t.Fatal(err)
		}
		e, err := trained.Evaluate(t.Context(), filepath.Join(dir, train.CheckpointFile), scored, trained.EvaluateOptions{Index: trained.BestModel})
		if err != nil {
			t.Fatal(err)
		}
		return e.Test.Metrics[task.Accuracy]
	}
	part := enginetest.Cut(t, enginetest.Part(all, func(v int) bool { return draw(v) < 0.7 }), 4, "")
	return score(part), score(enginetest.Cut(t, all, 4, ""))
}
