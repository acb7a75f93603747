package grappa_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/cora"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// scattered is Cora in shards of vertices drawn at random, so that most edges lie between
// them.
func scattered(t *testing.T) []*graph.Shard {
	path, err := cora.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	src, err := read.Open(t.Context(), path, read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	return traintest.CutBy(t, src, 8, "random")
}

// On Cora in four groups, those with a halo learn more than those among which shards
// pass, and these more than those that have their own shards only.
func TestCoraInIsolation(t *testing.T) {
	shards := scattered(t)
	mean := map[string]float64{}
	for name, g := range map[string][]string{
		"halo":   {"period=10"},
		"strict": {"period=10", "loader=strict"},
		"fixed":  {"loader=strict", "sweep=off"},
	} {
		sum, squares := 0.0, 0.0
		const seeds = 5
		for seed := range uint64(seeds) {
			r := traintest.CoraRecipe("gcn")
			r.Epochs, r.EvalEvery, r.Seed = 60, 10, seed+1
			r.Sharing = apart(g...)
			result, _ := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
			got := result.Best.Scores.Test.Accuracy
			sum, squares = sum+got, squares+got*got
		}
		mean[name] = sum / seeds
		deviation := math.Sqrt(max(0, squares/seeds-mean[name]*mean[name]) * seeds / (seeds - 1))
		t.Logf("%s: %.4f, ±%.4f in 95 of 100 cases", name, mean[name], 2.776*deviation/math.Sqrt(seeds))
	}
	if all := fmt.Sprint(mean); mean["halo"] < mean["strict"]+0.02 || mean["strict"] < mean["fixed"]+0.1 || mean["halo"] < 0.74 {
		t.Error(all)
	}
}

// Citations are found by four groups with a halo and a sweep nearly as well as by one machine.
func TestCoraLinksInIsolation(t *testing.T) {
	shards := traintest.CoraShards(t)
	mean := map[string]float64{}
	const seeds = 3
	for seed := range uint64(seeds) {
		for groups, settings := range map[string][]string{"one": {"groups=1"}, "four": {"groups=4", "period=10"}} {
			r := recipe.DefaultRecipe("gcn")
			r.Learn(task.Named("link"))
			r.Features, r.Batch, r.Epochs, r.EvalEvery, r.Seed = "none", 512, 60, 5, seed+1
			r.Sharing = apart(settings...)
			result, _ := traintest.MustRun(t, r, shards, isolation(train.Options{Threads: 2}))
			mean[groups] += result.Best.Scores.Metrics.Test[task.ROCAUC] / seeds
		}
	}
	if t.Log(mean); mean["four"] < 0.88 || mean["four"] < mean["one"]-0.03 {
		t.Errorf("groups have an area under the curve of %v", mean)
	}
}
