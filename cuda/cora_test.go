//go:build cuda && emulator

package cuda

import (
	"flag"
	"math"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/cora"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A GPU trains many more epochs in the time of the emulator's few.
var epochs = flag.Int("epochs", 2, "how long Cora is trained")

func coraShards(t *testing.T) []*graph.Shard {
	t.Helper()
	path, err := cora.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	src, err := read.Open(t.Context(), path, read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "shards")
	m, err := build.Run(t.Context(), src, build.Options{Dir: dir, Shards: 4, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	var all []*graph.Shard
	for i := range m.Shards {
		s, err := graph.OpenShard(filepath.Join(dir, graph.ShardFile(i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		all = append(all, s)
	}
	return all
}

// Cora is trained to the processor's losses, from the same samples: all at once, and in
// batches with few neighbours.
func TestCoraIsTheProcessors(t *testing.T) {
	shards := coraShards(t)
	batches := recipe.DefaultRecipe("sage")
	batches.Batch, batches.Fanouts, batches.Model.Hidden = 64, []int{5, 3}, 16
	whole := recipe.DefaultRecipe("gcn")
	whole.Model.Hidden = 16
	for _, r := range []recipe.Recipe{batches, whole} {
		r.Epochs, r.EvalEvery, r.Seed = *epochs, *epochs, 1
		r.Features = "row"
		var reports [2][]trained.Epoch
		for i, open := range []func(int) (tensor.Device, error){nil, func(int) (tensor.Device, error) { return Open("cuda:0") }} {
			_, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 2, Device: open, Report: func(e trained.Epoch) { reports[i] = append(reports[i], e) }})
			if err != nil {
				t.Fatalf("%s: %v", r.Model.Model, err)
			}
		}
		for i, want := range reports[0] {
			got := reports[1][i]
			if math.Abs(got.Loss-want.Loss) > 1e-3*want.Loss {
				t.Errorf("%s, epoch %d: the loss is %.6f, and the processor's %.6f", r.Model.Model, i+1, got.Loss, want.Loss)
			}
			if got.Rows != want.Rows || got.Edges != want.Edges {
				t.Errorf("%s, epoch %d: %d rows and %d edges, and the processor's %d and %d", r.Model.Model, i+1, got.Rows, got.Edges, want.Rows, want.Edges)
			}
		}
		got, want := reports[1][*epochs-1], reports[0][*epochs-1]
		t.Logf("%s: epoch %d: loss %.6f, the processor's %.6f", r.Model.Model, *epochs, got.Loss, want.Loss)
		if math.Abs(got.Scores.Test.Accuracy-want.Scores.Test.Accuracy) > 0.02 {
			t.Errorf("%s: test accuracy %.3f, and the processor's %.3f", r.Model.Model, got.Scores.Test.Accuracy, want.Scores.Test.Accuracy)
		}
	}
}
