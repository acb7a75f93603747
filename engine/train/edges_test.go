package train_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// alongModels are those that read features of edges.
var alongModels = []string{"gat", "gin", "mpnn"}

// TestAnswersInEdges trains on a graph whose answers are in features of edges, with them and without.
func TestAnswersInEdges(t *testing.T) {
	shards := traintest.Cut(t, enginetest.Described(true), 4)
	accuracy := func(model string, edges int) float64 {
		r := traintest.Small(model)
		r.Model.Dropout, r.Model.InputDropout, r.Model.AttentionDropout, r.Model.Hidden, r.Model.Layers = 0, 0, 0, 16, 1
		r.Epochs, r.Batch, r.Fanouts, r.Rate = 60, 100, nil, 0.02
		if model == "gat" {
			r.Model.OutHeads = 4
		}
		r.Model.EdgeFeatures = edges
		result, _ := traintest.MustRun(t, r, shards, train.Options{})
		return *result.Best.Eval.Test
	}
	for _, model := range alongModels {
		if a := accuracy(model, enginetest.DescribedColumns); a < 0.99 {
			t.Errorf("%s reaches %v with features of edges", model, a)
		}
		if a := accuracy(model, 0); a > 0.4 {
			t.Errorf("%s reaches %v without features of edges, of four groups that look alike", model, a)
		}
	}
}

// TestEdgesOnSeveralNodes compares gradients of several nodes with those of one, in float64.
func TestEdgesOnSeveralNodes(t *testing.T) {
	shards := traintest.Cut(t, enginetest.Described(true), 6)
	for _, model := range alongModels {
		r := traintest.ExactRecipe(model)
		r.Model.EdgeFeatures = enginetest.DescribedColumns
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		for _, by := range []string{"centric", "leap"} {
			r.Sharing = strategy.Given(by)
			for _, nodes := range []int{2, 3, 5} {
				traintest.Within(t, fmt.Sprintf("%s, %s, %d nodes", model, by, nodes), r, shards, traintest.Wide(train.Options{Threads: 1}), nodes, want, 1e-10)
			}
		}
	}
}

// TestEdgesAreTheSameEverywhere compares hashes of weights of several nodes with those of one, on the
// processor and on a device with memory of its own, where other nodes' edges lie in files, too.
func TestEdgesAreTheSameEverywhere(t *testing.T) {
	shards := traintest.Cut(t, enginetest.Described(true), 6)
	for _, model := range alongModels {
		r := traintest.Small(model)
		r.Model.EdgeFeatures = enginetest.DescribedColumns
		r.Epochs, r.Fanouts, r.Sharing.Deterministic = 2, []int{3, 2}, true
		_, epochs := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
		want := traintest.Hashes(epochs)
		for _, by := range []string{"centric", "leap"} {
			r.Sharing = strategy.Given(by)
			r.Sharing.Deterministic = true
			for name, o := range map[string]train.Options{"here": {Threads: 1}, "abroad": traintest.Abroad(train.Options{Threads: 1}, nil)} {
				_, of := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, o)
				if got := traintest.Hashes(of[0]); got != want {
					t.Errorf("%s, %s, %s: three nodes learn\n%s, and one\n%s", model, by, name, got, want)
				}
			}
		}
	}
}

// TestEdgesWithModelsOfEachNode trains by local, which averages the models of nodes.
func TestEdgesWithModelsOfEachNode(t *testing.T) {
	shards := traintest.Cut(t, enginetest.Described(true), 6)
	r := traintest.Small("mpnn")
	r.Model.EdgeFeatures, r.Model.Layers, r.Model.Dropout, r.Model.InputDropout, r.Fanouts = enginetest.DescribedColumns, 1, 0, 0, nil
	r.Epochs, r.Batch, r.Rate, r.Sharing = 60, 60, 0.02, strategy.Given("local")
	results, _ := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).MustRun(t, r, shards, traintest.Wide(train.Options{Strategies: strategies.All}))
	if a := *results[0].Best.Eval.Test; a < 0.95 {
		t.Errorf("two nodes reach %v", a)
	}
}

func TestEdgesRefused(t *testing.T) {
	described, bare := traintest.Cut(t, enginetest.Described(true), 4), traintest.Cut(t, enginetest.Described(false), 4)
	along := func(by, model string) recipe.Recipe {
		r := traintest.Small(model)
		r.Sharing.Strategy, r.Model.EdgeFeatures = by, enginetest.DescribedColumns
		return r
	}
	refused := func(r recipe.Recipe, of string, want string) {
		t.Helper()
		shards := described
		if of == "bare" {
			shards = bare
		}
		_, err := train.NewTrainer(t.Context(), r, shards, traintest.Wide(train.Options{Strategies: strategies.All}))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s by %q: %v, and not %q", r.Model.Model, r.Sharing.Strategy, err, want)
		}
	}
	for _, by := range []string{"p3", "pipe", "graph"} {
		for _, model := range alongModels {
			r := along(by, model)
			refused(r, "", by+" does not train "+r.Model.Named())
		}
	}
	refused(along("", "gin"), "bare", "the model reads 2 features of edges, and the edges of the dataset have 0")
	sage := along("", "sage")
	refused(sage, "", "a sage reads no features of edges")
	second := along("", "gat")
	second.Model.Version = 2
	refused(second, "", "{gat.version} 2 reads no features of edges")
	on := along("", "gin")
	on.Model.Edges, on.Model.EdgeFeatures = nn.LoopsOn, 0
	refused(on, "bare", "{model.edges} is on, and the edges of the dataset have no features")
	sharded := along("leap", "gin")
	sharded.Sharing = strategy.Given("leap", "topology=sharded")
	refused(sharded, "", "{topology} is sharded, and features of edges")
}
