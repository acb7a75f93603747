package train_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// bothWays are the relations of the planted graph with those back, which models need that have no
// weight for vertices that no relation reaches.
var bothWays = []string{"wrote", "edited", enginetest.Back + "wrote", enginetest.Back + "edited"}

func typedRecipe(model string, relations int) recipe.Recipe {
	r := traintest.Small(model)
	r.Model.Dropout, r.Model.InputDropout, r.Model.Hidden = 0, 0, 16
	r.Epochs, r.Batch, r.Fanouts, r.Rate = 60, 100, nil, 0.02
	tell(&r, relations)
	return r
}

// tell tells a model of the relations of a planted graph, half of which lead back to people.
func tell(r *recipe.Recipe, relations int) {
	switch ends := map[int]string{2: "0,1", 4: "0,0,1,1"}[relations]; {
	case strings.HasPrefix(r.Model.Model, "hetero:"):
		r.Model.Tell(relations, ends)
	case r.Model.Model == "hgt":
		r.Model.Tell(relations, ends)
		r.Model.TellStarts(map[int]string{2: "1,0", 4: "1,1,0,0"}[relations])
	case r.Model.Model == "rgcn":
		r.Model.Tell(relations, "")
	}
}

// TestEachConvolutionCarriesPartOfTheAnswer is TestEachRelationCarriesPartOfTheAnswer with a
// convolution for each relation.
func TestEachConvolutionCarriesPartOfTheAnswer(t *testing.T) {
	accuracy := func(model string, relations ...string) float64 {
		r := typedRecipe(model, len(relations))
		// People hear papers alone, which are all alike: where a vertex' own row does not count, the second
		// of two layers would know nothing.
		switch r.Model.Hidden = 16; model {
		case "hetero:gat":
			r.Model.Layers, r.Model.Hidden, r.Model.Heads, r.Model.AttentionDropout = 1, 8, 2, 0
		case "hetero:gcn":
			r.Model.Layers = 1
		}
		result, _ := traintest.MustRun(t, r, traintest.Cut(t, enginetest.Typed(relations...), 4), train.Options{})
		return *result.Best.Eval.Test
	}
	for _, model := range []string{"hetero:sage", "hetero:gat", "hetero:gcn", "hetero:gin", "hgt"} {
		if a := accuracy(model, bothWays...); a < 0.99 {
			t.Errorf("%s: with both relations the accuracy is %v", model, a)
		}
		for _, one := range []string{"wrote", "edited"} {
			if a := accuracy(model, one, enginetest.Back+one); a < 0.45 || a > 0.55 {
				t.Errorf("%s: with the relation %s alone the accuracy is %v, and half of the answer is known", model, one, a)
			}
		}
	}
}

// TestEachRelationCarriesPartOfTheAnswer trains with both relations, with one, and with a model
// that does not tell them apart.
func TestEachRelationCarriesPartOfTheAnswer(t *testing.T) {
	both := traintest.Cut(t, enginetest.Typed("wrote", "edited"), 4)
	accuracy := func(r recipe.Recipe, shards []*graph.Shard) float64 {
		result, _ := traintest.MustRun(t, r, shards, train.Options{})
		return *result.Best.Eval.Test
	}
	r := typedRecipe("rgcn", 2)
	if a := accuracy(r, both); a < 0.99 {
		t.Errorf("with both relations the accuracy is %v", a)
	}
	r.Model.Bases = 1
	if a := accuracy(r, both); a < 0.70 {
		t.Errorf("with one basis for two relations the accuracy is %v", a)
	}
	for _, one := range []string{"wrote", "edited"} {
		if a := accuracy(typedRecipe("rgcn", 1), traintest.Cut(t, enginetest.Typed(one), 4)); a < 0.45 || a > 0.55 {
			t.Errorf("with the relation %s alone the accuracy is %v, and half of the answer is known", one, a)
		}
	}
	if a := accuracy(typedRecipe("sage", 0), both); a > 0.8 {
		t.Errorf("without telling relations apart the accuracy is %v", a)
	}
}

// TestRelationsOnSeveralNodes compares gradients of several nodes, which hold all edges or ask for
// them, with those of one.
func TestRelationsOnSeveralNodes(t *testing.T) {
	shards := traintest.Cut(t, enginetest.Typed(bothWays...), 6)
	for _, c := range []struct {
		model, across string
		bases         int
	}{
		{model: "rgcn"}, {model: "rgcn", bases: 1}, {model: "hgt"},
		{model: "hetero:sage"}, {model: "hetero:gat"}, {model: "hetero:gcn"}, {model: "hetero:gin"},
		{model: "hetero:sage", across: nn.AcrossAttend}, {model: "hetero:gat", across: nn.AcrossMean},
	} {
		r := traintest.ExactRecipe(c.model)
		tell(&r, 4)
		r.Model.Bases = c.bases
		if c.across != "" {
			r.Model.Across = c.across
		}
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		for _, by := range []string{"centric", "leap"} {
			for _, topology := range []string{strategy.Replicated, strategy.Sharded} {
				r.Sharing = strategy.Given(by, "topology="+topology)
				for _, nodes := range []int{2, 3, 5} {
					name := fmt.Sprintf("%+v, %s, %s, %d nodes", c, by, topology, nodes)
					traintest.Within(t, name, r, shards, traintest.Wide(train.Options{Threads: 1}), nodes, want, 1e-10)
				}
			}
		}
	}
}

func TestRelationsRefused(t *testing.T) {
	shards := traintest.Cut(t, enginetest.Typed("wrote", "edited"), 4)
	untyped := traintest.Tiny(t, 60, 4)
	for _, c := range []struct {
		by        string
		relations int
		shards    []*graph.Shard
		want      string
	}{
		{"p3", 2, shards, "p3 does not train an rgcn"},
		{"pipe", 2, shards, "pipe does not train an rgcn"},
		{"graph", 2, shards, "graph does not train an rgcn"},
		{"", 0, shards, "the dataset has none"},
		{"", 2, untyped, "the edges of the dataset have 0"},
	} {
		for _, model := range []string{"rgcn", "hetero:sage", "hgt"} {
			r := typedRecipe(model, c.relations)
			r.Sharing.Strategy = c.by
			_, err := train.NewTrainer(t.Context(), r, c.shards, traintest.Wide(train.Options{Strategies: strategies.All}))
			want := strings.Replace(c.want, "an rgcn", r.Model.Named(), 1)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %s with %d relations: %v", c.by, model, c.relations, err)
			}
		}
	}
}

// TestRelationsThatComeLater compares several nodes, which bring edges once they know that there is
// room for them, with one, to the last bit.
func TestRelationsThatComeLater(t *testing.T) {
	for _, model := range []string{"rgcn", "hetero:sage", "hgt"} {
		relationsThatComeLater(t, model)
	}
}

func relationsThatComeLater(t *testing.T, model string) {
	shards := traintest.Cut(t, enginetest.Typed(bothWays...), 6)
	r := typedRecipe(model, 4)
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

// TestEveryStrategyTakesParallelEdges trains models that don't tell relations apart on a graph
// where an edge occurs once for each of them.
func TestEveryStrategyTakesParallelEdges(t *testing.T) {
	shards := traintest.Cut(t, enginetest.Typed("wrote", "signed", "edited"), 6)
	for _, by := range []string{"centric", "leap", "local", "p3", "grappa", "pipe", "graph"} {
		r := typedRecipe("gcn", 0)
		r.Epochs, r.Fanouts, r.Sharing = 2, []int{3, 2}, strategy.Given(by)
		if by == "pipe" || by == "graph" {
			r.Fanouts, r.Batch = nil, 0
		}
		for _, topology := range []string{"", strategy.Sharded} {
			if topology != "" && by != "centric" && by != "leap" {
				continue
			}
			if topology != "" {
				r.Sharing = strategy.Given(by, "topology="+topology)
			}
			_, _, err := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).Run(t.Context(), r, shards, train.Options{Threads: 1, Strategies: strategies.All}, nil)
			if err != nil {
				t.Errorf("%s %s: %v", by, topology, err)
			}
		}
	}
}

// TestMoreEdgesThanVertices asks other nodes for rows that have more edges than the graph has
// vertices.
func TestMoreEdgesThanVertices(t *testing.T) {
	names := make([]string, 250)
	for i := range names {
		names[i] = fmt.Sprintf("r%d", i)
	}
	shards := traintest.Cut(t, enginetest.Typed(names...), 6)
	r := typedRecipe("rgcn", len(names))
	r.Epochs, r.Fanouts, r.Sharing = 1, []int{3, 2}, strategy.Given("centric", "topology="+strategy.Sharded)
	_, _, err := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).Run(t.Context(), r, shards, train.Options{Threads: 1, Strategies: strategies.All}, nil)
	if err != nil {
		t.Error(err)
	}
}
