package grappa_test

import (
	"fmt"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// related are graphs of which pairs with relations are learnt: one relation of a graph with types, and
// triples. learn has a recipe learn them.
type related struct {
	shards    []*graph.Shard
	relations int // of edges, for models that tell them apart
	learn     func(t *testing.T, r *recipe.Recipe)
}

func relations(t *testing.T) map[string]related {
	t.Helper()
	typed := enginetest.Typed("wrote", enginetest.Back+"wrote", "edited", enginetest.Back+"edited")
	return map[string]related{
		"relation": {enginetest.Cut(t, typed, 6, ""), 4, func(t *testing.T, r *recipe.Recipe) {
			t.Helper()
			r.Learn(task.Named("link"))
			if err := r.Set("link.relation", "wrote", strategies.All.Declared()); err != nil {
				t.Fatal(err)
			}
			if err := r.LearnRelation(typed.Meta().Types); err != nil {
				t.Fatal(err)
			}
		}},
		"triples": {enginetest.Triples(t, 6), 2 * enginetest.TripleRelations, func(t *testing.T, r *recipe.Recipe) {
			t.Helper()
			r.Learn(task.Named("link"))
			if err := r.LearnTriples(dataset.About{Triples: enginetest.TripleRelations, Given: enginetest.GivenTriples()}, false); err != nil {
				t.Fatal(err)
			}
		}},
	}
}

// Pairs of a relation, and triples, are learnt inside groups as other pairs are: gradients do not
// depend on how many nodes run the groups, one group learns as one machine does, and over a whole sweep
// all are learnt, with heads and tails of negatives from inside.
func TestRelationsAreLearntInGroups(t *testing.T) {
	for name, of := range relations(t) {
		for _, model := range []string{"sage", "mlp", "rgcn"} {
			r := traintest.ExactRecipe(model)
			switch model {
			case "mlp":
				r.Model.Layers, r.Fanouts = 1, nil
			case "rgcn":
				r.Model.Tell(of.relations, "")
			}
			of.learn(t, &r)
			r.Links.Width, r.Links.Negatives, r.Batch = 3, 2, 100
			for _, settings := range [][]string{{"groups=3"}, {"groups=6", "loader=strict", "swept=2"}} {
				r.Sharing = apart(settings...)
				o := isolation(traintest.Wide(train.Options{Threads: 1}))
				want := traintest.Started(t, r, of.shards, o)
				for _, nodes := range []int{2, 3, 5} {
					traintest.Within(t, fmt.Sprintf("%s, %s, %v on %d nodes", name, model, settings, nodes), r, of.shards, o, nodes, want, 1e-10)
				}
			}
			r.Epochs, r.Sharing = 2, apart("groups=1")
			r.Sharing.Deterministic = true
			_, got := traintest.MustRun(t, r, of.shards, isolation(train.Options{Threads: 1}))
			r.Sharing = traintest.Short("sage").Sharing
			r.Sharing.Deterministic = true
			if _, want := traintest.MustRun(t, r, of.shards, train.Options{Threads: 1}); traintest.Learnt(got) != traintest.Learnt(want) {
				t.Errorf("%s, %s: %s\nand one machine\n%s", name, model, traintest.Learnt(got), traintest.Learnt(want))
			}
		}
		r := traintest.Small("sage")
		of.learn(t, &r)
		r.Batch, r.Sharing = 100, apart("groups=3", "swept=1", "period=1")
		l := traintest.Started(t, r, of.shards, isolation(train.Options{Threads: 1}))
		n, learnt := traintest.IsolatedOf(l), map[link.Pair]bool{}
		for super := range n.Schedule.Slots() {
			view, err := n.BringView(t.Context(), super, n.Now)
			if err != nil {
				t.Fatal(err)
			}
			n.Use(view)
			for step := range l.Run.Batches.Steps {
				if _, err := traintest.StepOnce(t.Context(), l, super+1, step); err != nil {
					t.Fatal(err)
				}
				for _, pair := range inside(t, l) {
					learnt[pair] = true
				}
			}
		}
		if all := l.Run.Data.Links.Of[graph.Train]; len(learnt) != len(all) || len(all) == 0 {
			t.Errorf("%s: %d of %d pairs are learnt in a sweep", name, len(learnt), len(all))
		}
	}
}
