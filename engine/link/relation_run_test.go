package link_test

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// Of each relation there is one back, after it.
var bothWays = []string{"wrote", enginetest.Back + "wrote", "edited", enginetest.Back + "edited"}

const (
	endsBothWays   = "0,1,0,1"
	startsBothWays = "1,0,1,0"
)

// learnRelation makes a recipe learn one relation of the planted graph with types.
func learnRelation(t *testing.T, r *recipe.Recipe, name string) {
	t.Helper()
	learnRelationOf(t, r, name, bothWays)
}

func learnRelationOf(t *testing.T, r *recipe.Recipe, name string, relations []string) {
	t.Helper()
	r.Learn(task.Named("link"))
	if err := r.Set("link.relation", name, strategies.All.Declared()); err != nil {
		t.Fatal(err)
	}
	if err := r.LearnRelation(enginetest.Typed(relations...).Meta().Types); err != nil {
		t.Fatal(err)
	}
	if r.Model.Related() {
		r.Model.Tell(len(bothWays), endsBothWays)
	}
	r.RankPairs()
}

// Gradients of several nodes are those of one, and so are the losses.
func TestGradientsOfARelationAreThoseOfOneNode(t *testing.T) {
	shards := enginetest.Cut(t, enginetest.Typed(bothWays...), 5, "")
	for _, model := range []string{"rgcn", "hetero:sage", "hetero:gat", "hgt", "sage"} {
		r := traintest.ExactRecipe(model)
		learnRelation(t, &r, "wrote")
		r.Links.Width, r.Links.Negatives, r.Batch = 3, 2, 100
		switch model {
		case "hgt":
			r.Model.TellStarts(startsBothWays)
		case "hetero:sage":
			r.Model.Across, r.Loss = nn.AcrossAttend, link.Softmax
		}
		if model == "rgcn" { // the others draw the same of all
			if err := r.FanEach([][]int{{4, 3}, {5, 2}, {1, 1}, {2, 2}}); err != nil {
				t.Fatal(err)
			}
		}
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		for _, nodes := range []int{1, 2, 3, 5} {
			for how, sharing := range traintest.Sharings(nodes) {
				r.Sharing = sharing
				traintest.Within(t, fmt.Sprintf("%s on %d nodes by %s", model, nodes, how), r, shards, traintest.Wide(train.Options{Threads: 1}), nodes, want, 1e-10)
			}
		}
	}
}

// No block has an edge of the relation that is held out, or one of its own step, nor their edges back;
// edges of another relation between the same vertices stay.
func TestBlocksLackTheRelationToBeFoundOut(t *testing.T) {
	alike := []string{"wrote", enginetest.Back + "wrote", "read", enginetest.Back + "read"} // between the same vertices
	shards := enginetest.Cut(t, enginetest.Typed(alike...), 5, "")
	for _, model := range []string{"rgcn", "hetero:sage"} {
		r := traintest.ExactRecipe(model)
		learnRelationOf(t, &r, "read", alike)
		r.Fanouts, r.Batch = nil, 60
		r.Sharing = strategy.Given("leap")
		m := traintest.NewMesh(2, traintest.Uneven(len(shards), 2))
		all := m.Start(t, r, shards, train.Options{Threads: 1})
		links := all[0].Run.Data.Links
		hidden, own := map[link.Pair]bool{}, map[link.Pair]bool{}
		for _, part := range []graph.Mark{graph.Validation, graph.Test} {
			for _, of := range links.Of[part] {
				hidden[of] = true
			}
		}
		for _, at := range all[0].Run.Batches.Roots(0) {
			own[links.Of[graph.Train][at]] = true
		}
		m = traintest.NewMesh(2, traintest.Uneven(len(shards), 2))
		if err := m.Each(func(node int) error {
			_, err := traintest.StepOnce(t.Context(), all[node], 1, 0)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		learnt, others := 0, 0
		check := func(u, v uint32, number int) {
			if number%2 == 1 {
				u, v = v, u
			}
			of := link.Pair{Source: u, Target: v}
			switch apart := hidden[of] || own[of]; {
			case number < 2 && apart:
				others++
			case number >= 2 && apart:
				t.Fatalf("%s: messages pass along %v, by the relation %d", model, of, number)
			case number >= 2:
				learnt++
			}
		}
		for _, l := range all {
			for _, g := range l.Run.Batches.Slots[0].Groups {
				for _, b := range g.Batch.Blocks {
					for target := range b.Rows {
						v := b.Vertices[target]
						if r := b.Related; r != nil {
							for _, row := range r.Pairs.Indices[r.Pairs.Indptr[target]:r.Pairs.Indptr[target+1]] {
								number := sort.Search(len(bothWays), func(i int) bool { return r.First[i+1] > int(row) })
								for _, source := range r.Indices[r.Indptr[row]:r.Indptr[row+1]] {
									check(b.Vertices[source], v, number)
								}
							}
							continue
						}
						for number := range b.Apart {
							of := b.Apart[number]
							for _, source := range of.Indices[of.Indptr[target]:of.Indptr[target+1]] {
								check(b.Vertices[source], v, number)
							}
						}
					}
				}
			}
		}
		if len(own) == 0 || len(hidden) == 0 || learnt == 0 || others == 0 {
			t.Errorf("%s: %d edges of the relation are seen, and %d of the other one between pairs to be found out: nothing is shown", model, learnt, others)
		}
	}
}

// A paper has edges of each relation from one group of people alone, which its other edges say: models
// learn to tell the groups apart. Half of the negatives are of the right group, so that an area of 0.75
// is the most that can be expected.
func TestARelationIsLearnt(t *testing.T) {
	shards := enginetest.Cut(t, enginetest.Typed(bothWays...), 5, "")
	for _, model := range []string{"rgcn", "hetero:sage"} {
		r := recipe.DefaultRecipe(model)
		learnRelation(t, &r, "wrote")
		r.Features, r.Model.Hidden, r.Model.Dropout, r.Batch, r.Epochs, r.Rate, r.Optimizer.WeightDecay, r.Metric = "none", 16, 0, 200, 20, 0.01, 0, task.ROCAUC
		r.Links.Split = [3]float64{0.7, 0.15, 0.15}
		r.Sharing = strategy.Given("leap")
		result, _ := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).MustRun(t, r, shards, train.Options{Threads: 1})
		if area := result[0].Best.Scores.Metrics.Test[task.ROCAUC]; area < 0.68 {
			t.Errorf("%s: an area of %.3f", model, area)
		}
	}
}

func TestRefusalsOfRelations(t *testing.T) {
	types := enginetest.Typed(bothWays...).Meta().Types
	about := dataset.About{Vertices: 660, Edges: 7200, Features: 3, Relations: len(bothWays)}
	for want, change := range map[string]func(r *recipe.Recipe, about *dataset.About){
		"": func(*recipe.Recipe, *dataset.About) {},
		"rgcn sees edges by relation, and {task} link learns those of one: name it with {link.relation}": func(r *recipe.Recipe, _ *dataset.About) { r.Links.Relation = nil },
		"{link.relation} is person-wrote-paper, the relation 0, and the dataset has 0":                   func(r *recipe.Recipe, a *dataset.About) { r.Model.Model, a.Relations = "sage", 0 },
		"{batch} is 1530, and the dataset has about 1530 edges for training at most":                     func(r *recipe.Recipe, _ *dataset.About) { r.Batch = 1530 },
		"{sweep} link.relation: all models of a sweep learn the same pairs": func(r *recipe.Recipe, _ *dataset.About) {
			other := *r
			learnRelation(t, &other, "edited")
			r.Sweep = []recipe.Variant{{Recipe: *r}, {Recipe: other}}
		},
	} {
		r, a := recipe.DefaultRecipe("rgcn"), about
		learnRelation(t, &r, "wrote")
		r.Batch, r.Fanouts = 50, nil
		change(&r, &a)
		if err := r.Check(a, strategies.All); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for want, of := range map[string]struct {
		name  string
		types *graph.Types
	}{
		"{link.relation}: no relation is called read: the dataset has wrote, rev-wrote, edited, rev-edited": {"read", types},
		"{link.relation} is wrote, and the dataset has no relations: leave it out":                          {"wrote", nil},
	} {
		r := recipe.DefaultRecipe("sage")
		r.Learn(task.Named("link"))
		if err := r.Set("link.relation", of.name, strategies.All.Declared()); err != nil {
			t.Fatal(err)
		}
		if err := r.LearnRelation(of.types); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
