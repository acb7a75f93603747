//go:build long

package pipe_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/cora"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// On Cora in eight chunks, deep models learn by pipe what they learn by graph, but for a
// few points: with histories that are made, and with rows and gradients that epochs leave.
func TestCoraInAPipeline(t *testing.T) {
	path, err := cora.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	shards := traintest.FromFile(t, path, 8)
	const few = 6
	for model, others := range map[string][]string{
		"gcnii": {"pipe.ways=2"}, "resgcn": {"pipe.period=5", "pipe.histories=left", "pipe.gradients=kept"},
	} {
		learnt := func(s strategy.Settings) float64 {
			r := recipe.DefaultRecipe(model)
			r.Model.Layers, r.Model.Hidden, r.Epochs, r.EvalEvery, r.Sharing = 6, 32, 60, 10, s
			result, _ := traintest.MustRun(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
			return 100 * result.Best.Scores.Test.Accuracy
		}
		exactly := learnt(strategy.Given(pipe.GraphName, "pipe.ways=4"))
		if exactly < 72 {
			t.Errorf("%s by graph: %.1f %%", model, exactly)
		}
		for _, p := range [][]string{nil, others} {
			if got := learnt(strategy.Given(pipe.Name, p...)); got < exactly-few {
				t.Errorf("%s by pipe, %v: %.1f %%, and by graph %.1f %%", model, p, got, exactly)
			}
		}
	}
}
