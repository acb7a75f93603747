package train_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// The planted graph: each paper has three authors and three editors, who are of one type. What
// group its authors are of is half of its label, that of its editors the other half.
const (
	typedPeople = 60
	typedPapers = 600
)

// typedGraph is the graph with the relations that are kept.
func typedGraph(relations ...string) graph.Source {
	group := func(paper, relation int) int { return paper >> relation & 1 }
	t := &graph.Types{Vertices: []graph.VertexType{
		{Name: "paper", Vertices: typedPapers, Features: 1, Bare: true},
		{Name: "person", Vertices: typedPeople, First: 1, Features: 2},
	}}
	for _, name := range relations {
		t.Relations = append(t.Relations, graph.Relation{Source: "person", Name: name, Target: "paper", Edges: 3 * typedPapers})
	}
	s := &source.Assembled{Info: graph.Meta{
		Format: "typed", Vertices: typedPapers + typedPeople, Edges: uint64(3 * typedPapers * len(relations)), Weighted: true,
		Features: 3, Sparse: true, NonZeros: typedPapers + typedPeople, Classes: 4, Types: t,
	}}
	s.ReadEdges = func(_ context.Context, yield func(graph.EdgeBatch) error) error {
		for r, name := range relations {
			half := map[string]int{"wrote": 0, "edited": 1}[name]
			var b graph.EdgeBatch
			for paper := range typedPapers {
				for k := range 3 {
					person := (paper*7+k*11+half*5)%(typedPeople/2)*2 + group(paper, half)
					b.Src, b.Dst = append(b.Src, uint32(typedPapers+person)), append(b.Dst, uint32(paper))
					b.Weights = append(b.Weights, float32(r))
				}
			}
			if err := yield(b); err != nil {
				return err
			}
		}
		return nil
	}
	s.ReadFeatures = func(_ context.Context, yield func(graph.FeatureBatch) error) error {
		b := graph.FeatureBatch{Indptr: []int64{0}}
		for v := range typedPapers + typedPeople {
			column := 0
			if v >= typedPapers {
				column = 1 + (v-typedPapers)%2
			}
			b.Indices, b.Values, b.Indptr = append(b.Indices, uint32(column)), append(b.Values, 1), append(b.Indptr, int64(v+1))
		}
		return yield(b)
	}
	s.Marks = [][]graph.Mark{make([]graph.Mark, typedPapers+typedPeople)}
	for v := range typedPapers + typedPeople {
		label := graph.NoLabel
		if v < typedPapers {
			label = int32(v % 4)
			s.Marks[0][v] = []graph.Mark{graph.Train, graph.Validation, graph.Test}[v/4%3]
		}
		s.Classes = append(s.Classes, label)
	}
	return s
}

func typedRecipe(model string, relations int) recipe.Recipe {
	r := traintest.Small(model)
	r.Model.Dropout, r.Model.InputDropout, r.Model.Hidden = 0, 0, 16
	r.Epochs, r.Batch, r.Fanouts, r.Rate = 60, 100, nil, 0.02
	if model == "rgcn" {
		r.Model.Relations = relations
	}
	return r
}

// TestEachRelationCarriesPartOfTheAnswer trains with both relations, with one, and with a model
// that does not tell them apart.
func TestEachRelationCarriesPartOfTheAnswer(t *testing.T) {
	both := traintest.Cut(t, typedGraph("wrote", "edited"), 4)
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
		if a := accuracy(typedRecipe("rgcn", 1), traintest.Cut(t, typedGraph(one), 4)); a < 0.45 || a > 0.55 {
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
	shards := traintest.Cut(t, typedGraph("wrote", "edited"), 6)
	for _, bases := range []int{0, 1} {
		r := traintest.ExactRecipe("rgcn")
		r.Model.Relations, r.Model.Bases = 2, bases
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		for _, by := range []string{"centric", "leap"} {
			for _, topology := range []string{strategy.Replicated, strategy.Sharded} {
				r.Sharing = strategy.Given(by, "topology="+topology)
				for _, nodes := range []int{2, 3} {
					name := fmt.Sprintf("%s, %s, %d nodes, %d bases", by, topology, nodes, bases)
					traintest.Within(t, name, r, shards, traintest.Wide(train.Options{Threads: 1}), nodes, want, 1e-10)
				}
			}
		}
	}
}

func TestRelationsRefused(t *testing.T) {
	shards := traintest.Cut(t, typedGraph("wrote", "edited"), 4)
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
		{"grappa", 2, shards, "grappa does not train an rgcn"},
		{"", 0, shards, "the dataset has none"},
		{"", 2, untyped, "the edges of the dataset have 0"},
	} {
		r := typedRecipe("rgcn", c.relations)
		r.Sharing.Strategy = c.by
		_, err := train.NewTrainer(t.Context(), r, c.shards, traintest.Wide(train.Options{Strategies: strategies.All}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %d relations: %v", c.by, c.relations, err)
		}
	}
}

// TestRelationsThatComeLater compares several nodes, which bring edges once they know that there is
// room for them, with one, to the last bit.
func TestRelationsThatComeLater(t *testing.T) {
	shards := traintest.Cut(t, typedGraph("wrote", "edited"), 6)
	r := typedRecipe("rgcn", 2)
	r.Epochs, r.Fanouts, r.Sharing.Deterministic = 2, []int{3, 2}, true
	_, epochs := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	want := traintest.Hashes(epochs)
	for _, by := range []string{"centric", "leap"} {
		r.Sharing = strategy.Given(by)
		r.Sharing.Deterministic = true
		for name, o := range map[string]train.Options{"here": {Threads: 1}, "abroad": traintest.Abroad(train.Options{Threads: 1}, nil)} {
			_, of := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, o)
			if got := traintest.Hashes(of[0]); got != want {
				t.Errorf("%s, %s: three nodes learn\n%s, and one\n%s", by, name, got, want)
			}
		}
	}
}

// TestEveryStrategyTakesParallelEdges trains models that don't tell relations apart on a graph
// where an edge occurs once for each of them.
func TestEveryStrategyTakesParallelEdges(t *testing.T) {
	shards := traintest.Cut(t, typedGraph("wrote", "signed", "edited"), 6)
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
	shards := traintest.Cut(t, typedGraph(names...), 6)
	r := typedRecipe("rgcn", len(names))
	r.Epochs, r.Fanouts, r.Sharing = 1, []int{3, 2}, strategy.Given("centric", "topology="+strategy.Sharded)
	_, _, err := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).Run(t.Context(), r, shards, train.Options{Threads: 1, Strategies: strategies.All}, nil)
	if err != nil {
		t.Error(err)
	}
}
