package link_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// divided makes a recipe learn the planted edges with a given split, with pairs to compare with.
func divided(t *testing.T, r *recipe.Recipe, types *graph.Types, said ...string) {
	t.Helper()
	r.Learn(task.Named("link"))
	about := dataset.About{Triples: graph.PairRelations, Given: types.Given, Pairs: true, Against: types.Relations[graph.PairNegative].Edges}
	if err := r.LearnTriples(about, false, said...); err != nil {
		t.Fatal(err)
	}
	r.RankPairs(said...)
}

// Gradients of several nodes are those of one, and so are the losses.
func TestGradientsOfAGivenSplitAreThoseOfOneNode(t *testing.T) {
	shards, types := enginetest.Divided(t, 5, true)
	for _, s := range []struct{ model, decoder, from string }{{"gcn", "dot", ""}, {"sage", "mlp", link.InBatch}} {
		r := traintest.ExactRecipe(s.model)
		divided(t, &r, types)
		r.Links.Width, r.Links.Negatives, r.Links.Decoder, r.Links.From, r.Batch = 3, 2, s.decoder, s.from, 40
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		for nodes := 1; nodes <= 3; nodes++ {
			for how, sharing := range traintest.Sharings(nodes) {
				r.Sharing = sharing
				traintest.Within(t, fmt.Sprintf("%s, %s on %d nodes by %s", s.model, s.decoder, nodes, how), r, shards, traintest.Wide(train.Options{Threads: 1}), nodes, want, 1e-10)
			}
		}
	}
}

// No block has an edge of validation or test, a pair to compare with, or an edge of its own step, in
// either direction, and neither evaluations nor predictions see any.
func TestBlocksLackWhatAGivenSplitHoldsOut(t *testing.T) {
	shards, types := enginetest.Divided(t, 5, true)
	r := traintest.ExactRecipe("gcn")
	divided(t, &r, types)
	r.Fanouts, r.Batch, r.Sharing = nil, 30, strategy.Given("leap")
	m := traintest.NewMesh(2, traintest.Uneven(len(shards), 2))
	all := m.Start(t, r, shards, train.Options{Threads: 1})
	links := all[0].Run.Data.Links
	learnt := map[link.Pair]bool{}
	both := func(to map[link.Pair]bool, of link.Pair) {
		to[of], to[link.Pair{Source: of.Target, Target: of.Source}] = true, true
	}
	for _, of := range links.Of[graph.Train] {
		both(learnt, of)
	}
	left, own := 0, map[link.Pair]bool{}
	for step := range all[0].Run.Batches.Steps {
		if err := m.Each(func(node int) error {
			_, err := traintest.StepOnce(t.Context(), all[node], 1, step)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		clear(own)
		for _, at := range all[0].Run.Batches.Roots(step) {
			both(own, links.Of[graph.Train][at])
		}
		for _, l := range all {
			s := l.Run.Batches.Slots[0]
			for i := range s.Groups {
				for _, b := range s.Groups[i].Batch.Blocks {
					for target := range b.Rows {
						for _, source := range b.Indices[b.Indptr[target]:b.Indptr[target+1]] {
							of := link.Pair{Source: b.Vertices[source], Target: b.Vertices[target]}
							if of.Source == of.Target {
								continue
							}
							if left++; !learnt[of] || own[of] {
								t.Fatalf("step %d: messages pass along %v, which is to be found out", step, of)
							}
						}
					}
				}
			}
		}
	}
	if left == 0 || len(own) == 0 {
		t.Errorf("%d edges are seen: nothing is shown", left)
	}
	d, err := dataset.Open(shards, 0, "none")
	if err != nil {
		t.Fatal(err)
	}
	for _, topology := range []interface {
		Vertices() int
		Row(v int) ([]int32, []float32)
	}{all[0].Run.Data.Topology, d.Topology} {
		seen := 0
		for v := range topology.Vertices() {
			sources, _ := topology.Row(v)
			for _, u := range sources {
				if int(u) == v {
					continue
				}
				if seen++; !learnt[link.Pair{Source: uint32(u), Target: uint32(v)}] {
					t.Fatalf("evaluations and predictions see the edge from %d to %d", u, v)
				}
			}
		}
		if seen != len(learnt) {
			t.Errorf("they see %d edges, want %d", seen, len(learnt))
		}
	}
}

// What a given split has held out is found, alone or with others, from checkpoints, and when models
// are evaluated again.
func TestAGivenSplitIsLearnt(t *testing.T) {
	shards, types := enginetest.Divided(t, 5, true)
	r := recipe.DefaultRecipe("sage")
	divided(t, &r, types)
	if r.Links.Ranks != link.Given || r.Links.Decoder != "dot" || r.Links.Relations != 0 || r.Links.Split[1] == 0 {
		t.Fatalf("%+v", r.Links)
	}
	r.Features, r.Model.Dropout, r.Model.Hidden, r.Links.Width, r.Links.Hits = "none", 0, 16, 8, []int{5, 20}
	r.Batch, r.Epochs, r.EvalEvery, r.Rate, r.Optimizer.WeightDecay, r.Metric, r.Sharing.Deterministic = 60, 20, 5, 0.02, 0, "hits_at_20", true
	dir := t.TempDir()
	result, one := traintest.MustRun(t, r, shards, train.Options{Threads: 2, Dir: dir, Dataset: "d"})
	best := result.Best.Scores.Metrics
	if m := best.Test; m[task.ROCAUC] < 0.9 || m["hits_at_20"] < 0.9 || m["hits_at_5"] > m["hits_at_20"] || len(m) != 5 || result.Best.Eval.Score != best.Val["hits_at_20"] {
		t.Errorf("%v, compared by %g of %v", m, result.Best.Eval.Score, best.Val)
	}
	e, err := trained.Evaluate(t.Context(), filepath.Join(dir, train.CheckpointFile), shards, trained.EvaluateOptions{Index: trained.BestModel, Split: trained.TrainedSplit, Threads: 1})
	if err != nil || fmt.Sprint(e.Test.Metrics, e.Val.Metrics) != fmt.Sprint(best.Test, best.Val) {
		t.Errorf("evaluated again: %+v, want %v: %v", e, best, err)
	}
	sameElsewhere(t, "a given split", r, shards, one, 10, "centric", "leap")
	of := *r.Links
	of.Ranks = link.GivenOfSource
	r.Links, r.Sharing, r.Metric, r.Epochs = &of, strategy.Settings{}, task.MRR, 5
	if result, _ := traintest.MustRun(t, r, shards, train.Options{Threads: 2}); !(result.Best.Scores.Metrics.Test[task.MRR] > 0.5) {
		t.Errorf("among the pairs of the source: %v", result.Best.Scores.Metrics.Test)
	}
}

// What does not fit a given split is refused in a sentence.
func TestRefusalsOfAGivenSplit(t *testing.T) {
	_, types := enginetest.Divided(t, 2, true)
	given := types.Given
	about := dataset.About{Vertices: enginetest.DividedVertices, Edges: 2 * (given[0] + given[1] + given[2]), Features: 6, Relations: 4, Triples: graph.PairRelations, Given: given, Pairs: true, Against: 9}
	for want, change := range map[string]func(r *recipe.Recipe, about *dataset.About){
		"": func(*recipe.Recipe, *dataset.About) {},
		"the edges of the dataset have a given split, some of which are to be found out, and {task} is class: give {task} link": func(r *recipe.Recipe, a *dataset.About) { r.Learn(task.Named("class")); r.Links = nil; a.Classes = 3 },
		"the recipe learns edges with a given split, and those of the dataset have none":                                        func(_ *recipe.Recipe, a *dataset.About) { a.Triples, a.Pairs = 0, false },
		"the edges of the dataset have a given split, and the recipe draws one":                                                 func(r *recipe.Recipe, _ *dataset.About) { r.Links = link.Default() },
		"rgcn sees edges by relation, and those of the dataset have none: choose another {model}": func(r *recipe.Recipe, a *dataset.About) {
			r.Model = recipe.DefaultRecipe("rgcn").Model
			r.Model.Tell(a.Relations, "")
		},
		"{link.relation} is for graphs with types, and the edges of the dataset have a given split": func(r *recipe.Recipe, _ *dataset.About) { r.Links.Relation = &link.Relation{Name: "edge"} },
	} {
		r, a := traintest.ExactRecipe("gcn"), about
		divided(t, &r, types)
		change(&r, &a)
		err := r.Check(a, strategies.All)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	r := recipe.DefaultRecipe("gcn")
	r.Learn(task.Named("link"))
	if err := r.LearnTriples(about, true); err == nil || err.Error() != "{edge-split} draws a split, and the edges of the dataset have one: leave it out" {
		t.Error(err)
	}
	without := about
	without.Against = 0
	r.Links.Ranks = link.Given
	if err := r.LearnTriples(without, false, "link.ranks"); err == nil || !strings.Contains(err.Error(), "this one has none: give all, 0, or a number of vertices") {
		t.Error(err)
	}
}

// A model that learned a given split is evaluated, and trained further, only on datasets with a given
// split; a model that learned a drawn split only on datasets without.
func TestModelsOfAGivenSplitKeepToIt(t *testing.T) {
	shards, types := enginetest.Divided(t, 2, false)
	triples := enginetest.Triples(t, 2)
	r := traintest.ExactRecipe("sage")
	divided(t, &r, &graph.Types{Given: types.Given, Relations: make([]graph.Relation, graph.PairRelations)})
	if r.Links.Ranks != link.JobRanks {
		t.Errorf("pairs are ranked among %d without given ones", r.Links.Ranks)
	}
	r.Links.Width, r.Batch, r.Epochs = 4, 20, 1
	dir := t.TempDir()
	traintest.MustRun(t, r, shards, train.Options{Threads: 1, Dir: dir, Dataset: "d"})
	w, err := trained.ReadWeighed(filepath.Join(dir, train.CheckpointFile), trained.BestModel)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Starts(&r, dataset.Describe(shards), nil); err != nil {
		t.Error(err)
	}
	of := *r.Links
	of.Given = nil
	r.Links = &of
	about := dataset.Describe(triples)
	about.Features, about.Triples = 6, 0
	if err := w.Starts(&r, about, nil); err == nil || !strings.Contains(err.Error(), "the model has learned edges with a given split, and those of the dataset have none") {
		t.Error(err)
	}
}
