package train_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// epochs times epochs of training, with and without their evaluation.
func epochs(b *testing.B, r recipe.Recipe, shards []*graph.Shard) {
	for _, evaluated := range []bool{false, true} {
		b.Run(map[bool]string{false: "train", true: "evaluate"}[evaluated], func(b *testing.B) {
			r.EvalEvery, r.Epochs = 1<<30, 1<<30
			tr := traintest.Started(b, r, shards, train.Options{})
			epoch := 0
			one := func() {
				epoch++
				tr.At.Epoch, tr.At.Step = epoch, 0
				if err := tr.Run.Steps(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			one()
			if evaluated {
				one = func() {
					if _, err := tr.Evaluate(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				one()
			}
			tr.At.Under = trained.Epoch{}
			b.ReportAllocs()
			for b.Loop() {
				one()
			}
			p, n := tr.At.Under.Phases, float64(b.N)
			b.ReportMetric(1000*p.Sample/n, "ms-sample")
			b.ReportMetric(1000*p.Gather/n, "ms-gather")
			b.ReportMetric(1000*p.Compute/n, "ms-compute")
			b.ReportMetric(1000*p.Wait/n, "ms-wait")
		})
	}
}

func BenchmarkCoraGCN16(b *testing.B) {
	epochs(b, traintest.CoraRecipe("gcn"), traintest.CoraShards(b))
}

func BenchmarkComputersGCN64(b *testing.B) {
	r := recipe.DefaultRecipe("gcn")
	r.Model.Hidden, r.Features = 64, "none"
	epochs(b, r, traintest.FromFile(b, "../graph/read/testdata/amazon_computers.npz", 16))
}

func BenchmarkSampledSAGE(b *testing.B) {
	src, err := generate.New(generate.Options{Preset: "arxiv", Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	shards := traintest.Cut(b, src, 64)
	for name, hidden := range map[string]int{"64": 64, "256": 256} {
		b.Run(name, func(b *testing.B) {
			r := recipe.DefaultRecipe("sage")
			r.Model.Hidden, r.Model.Layers = hidden, 3
			r.Batch, r.Fanouts = 1024, []int{15, 10, 5}
			epochs(b, r, shards)
		})
	}
}
