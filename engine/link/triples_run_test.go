package link_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// triples makes a recipe learn the planted triples.
func triples(t *testing.T, r *recipe.Recipe, said ...string) {
	t.Helper()
	r.Learn(task.Named("link"))
	if err := r.LearnTriples(dataset.About{Triples: enginetest.TripleRelations, Given: enginetest.GivenTriples()}, false, said...); err != nil {
		t.Fatal(err)
	}
	if r.Model.Related() {
		r.Model.Tell(2*enginetest.TripleRelations, "")
	}
	r.RankPairs()
}

// Gradients of several nodes are those of one, and so are the losses.
func TestGradientsOfTriplesAreThoseOfOneNode(t *testing.T) {
	shards := enginetest.Triples(t, 5)
	for _, model := range []string{"rgcn", "sage", "hetero:gcn"} {
		r := traintest.ExactRecipe(model)
		triples(t, &r)
		r.Links.Width, r.Links.Negatives, r.Batch = 3, 2, 100
		if model == "sage" {
			r.Loss = link.Softmax
		}
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		if want.Model.Added() != 3*enginetest.TripleRelations {
			t.Fatalf("the decoder has %d weights", want.Model.Added())
		}
		for _, nodes := range []int{1, 2, 3, 5} {
			for how, sharing := range traintest.Sharings(nodes) {
				r.Sharing = sharing
				traintest.Within(t, fmt.Sprintf("%s on %d nodes by %s", model, nodes, how), r, shards, traintest.Wide(train.Options{Threads: 1}), nodes, want, 1e-10)
			}
		}
	}
}

// No block has a triple of validation or test, nor one of its own step in either direction; other
// relations between the same entities stay.
func TestBlocksLackTriplesToBeFoundOut(t *testing.T) {
	shards := enginetest.Triples(t, 5)
	for _, model := range []string{"rgcn", "hetero:sage", "sage"} {
		r := traintest.ExactRecipe(model)
		triples(t, &r)
		r.Fanouts, r.Batch = nil, 60
		r.Sharing = strategy.Given("leap")
		all := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).Start(t, r, shards, train.Options{Threads: 1})
		links := all[0].Run.Data.Links
		const relations = enginetest.TripleRelations
		hidden, seen := map[[2]uint32]bool{}, 0
		for _, part := range []graph.Mark{graph.Validation, graph.Test} {
			for _, of := range links.Of[part] {
				hidden[[2]uint32{of.Source, of.Target}], hidden[[2]uint32{of.Target, of.Source}] = true, true
			}
		}
		own := map[link.Pair]bool{}
		for _, at := range all[0].Run.Batches.Roots(0) {
			own[links.Of[graph.Train][at]] = true
		}
		m := traintest.NewMesh(2, traintest.Uneven(len(shards), 2))
		if err := m.Each(func(node int) error {
			_, err := traintest.StepOnce(t.Context(), all[node], 1, 0)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		check := func(u, v uint32, number int) {
			seen++
			relation, part, reversed := graph.TripleOf(number, relations)
			if reversed {
				u, v = v, u
			}
			of := link.Pair{Source: u, Target: v, Relation: uint32(relation)}
			if part != graph.Train || hidden[[2]uint32{u, v}] {
				t.Fatalf("%s: messages pass along %v, which is held out", model, of)
			}
			if own[of] {
				t.Fatalf("%s: messages pass along %v, which the step learns", model, of)
			}
		}
		for _, l := range all {
			for _, g := range l.Run.Batches.Slots[0].Groups {
				for _, b := range g.Batch.Blocks {
					for target := range b.Rows {
						v := b.Vertices[target]
						switch {
						case b.Related != nil:
							r := b.Related
							for _, row := range r.Pairs.Indices[r.Pairs.Indptr[target]:r.Pairs.Indptr[target+1]] {
								number := sort.Search(2*relations, func(i int) bool { return r.First[i+1] > int(row) })
								for _, source := range r.Indices[r.Indptr[row]:r.Indptr[row+1]] {
									check(b.Vertices[source], v, number)
								}
							}
						case b.Apart != nil:
							for number := range b.Apart {
								of := b.Apart[number]
								for _, source := range of.Indices[of.Indptr[target]:of.Indptr[target+1]] {
									check(b.Vertices[source], v, number)
								}
							}
						default:
							for _, source := range b.Indices[b.Indptr[target]:b.Indptr[target+1]] {
								for number := range 2 * relations { // it can't tell them apart
									relation, _, reversed := graph.TripleOf(number, relations)
									u, w := b.Vertices[source], v
									if reversed {
										u, w = w, u
									}
									if own[link.Pair{Source: u, Target: w, Relation: uint32(relation)}] {
										t.Fatalf("%s: messages pass along a triple that the step learns", model)
									}
								}
								if seen++; hidden[[2]uint32{b.Vertices[source], v}] {
									t.Fatalf("%s: messages pass along a triple that is held out", model)
								}
							}
						}
					}
				}
			}
		}
		if seen == 0 || len(own) == 0 {
			t.Errorf("%s: %d edges are seen: nothing is shown", model, seen)
		}
	}
}

// Where relations carry the answer, a model that knows them finds it, alone or with others, on
// devices with memory of their own and from checkpoints; one that does not comes to nothing.
func TestRelationsCarryTheAnswer(t *testing.T) {
	shards := enginetest.Triples(t, 5)
	r := recipe.DefaultRecipe("rgcn")
	triples(t, &r)
	r.Features, r.Model.Dropout, r.Model.InputDropout, r.Model.Hidden = "none", 0, 0, 16
	r.Links.Width, r.Links.Negatives, r.Batch, r.Epochs, r.Rate = 16, 4, 200, 30, 0.02
	r.Optimizer.WeightDecay, r.Metric, r.EvalEvery, r.Sharing.Deterministic = 0, task.MRR, 10, true
	result, one := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
	best := result.Best.Scores.Metrics.Test
	if best[task.MRR] < 0.95 || best["hits_at_1"] < 0.95 || best["hits_at_10"] < 0.95 {
		t.Errorf("with relations: %v", best)
	}
	blind := r
	blind.Model = recipe.DefaultRecipe("sage").Model
	blind.Model.Dropout, blind.Model.InputDropout, blind.Model.Hidden = 0, 0, 16
	of := *r.Links
	of.Decoder = "dot"
	blind.Links = &of
	result, _ = traintest.MustRun(t, blind, shards, train.Options{Threads: 2})
	// Of the vertices that are not known to be right, 24 are tails or heads, and any may come first.
	if worst := result.Best.Scores.Metrics.Test; worst[task.MRR] > 0.3 {
		t.Errorf("without relations: %v", worst)
	}
	if _, there := traintest.MustRun(t, r, shards, traintest.Abroad(train.Options{Threads: 2}, nil)); traintest.Learnt(there) != traintest.Learnt(one) {
		t.Errorf("on a device with memory of its own:\n%sand here:\n%s", traintest.Learnt(there), traintest.Learnt(one))
	}
	sameElsewhere(t, "triples", r, shards, one, 10, "centric", "leap")
}

// A checkpoint and an exported model score as training did, say how they decode, and make embeddings
// from triples for training alone.
func TestModelsOfTriplesLeave(t *testing.T) {
	shards := enginetest.Triples(t, 5)
	r := traintest.ExactRecipe("rgcn")
	triples(t, &r)
	r.Links.Width, r.Batch, r.Epochs, r.Metric = 4, 200, 2, task.MRR
	dir := t.TempDir()
	result, _ := traintest.MustRun(t, r, shards, train.Options{Threads: 1, Dir: dir, Dataset: "d"})
	checkpoint := filepath.Join(dir, train.CheckpointFile)
	e, err := trained.Evaluate(t.Context(), checkpoint, shards, trained.EvaluateOptions{Index: trained.BestModel, Split: trained.TrainedSplit, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	if want := result.Best.Scores.Metrics; fmt.Sprint(e.Test.Metrics, e.Val.Metrics) != fmt.Sprint(want.Test, want.Val) {
		t.Errorf("evaluated again: %v and %v, want %v and %v", e.Test.Metrics, e.Val.Metrics, want.Test, want.Val)
	}
	var text bytes.Buffer
	if err := trained.Export(&text, checkpoint, trained.BestModel); err != nil {
		t.Fatal(err)
	}
	exported := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(exported, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "decoder.weight[r]") {
		t.Error("the model does not say how it decodes triples")
	}
	embeddings := func(path string) (all []float32) {
		err := trained.Predict(t.Context(), path, shards, trained.PredictOptions{Index: trained.BestModel, Threads: 1},
			func(p trained.Prediction) error {
				if p.Links == nil || p.Links.Relations != enginetest.TripleRelations || len(p.Decoder) != 4*enginetest.TripleRelations {
					t.Errorf("%s: links %+v with %d weights", path, p.Links, len(p.Decoder))
				}
				return nil
			},
			func(_ int, rows []float32) error { all = append(all, rows...); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if one, other := embeddings(checkpoint), embeddings(exported); len(one) != 4*enginetest.TripleEntities || !slices.Equal(one, other) {
		t.Errorf("%d embeddings of the checkpoint, and others of the model", len(one))
	}
	d, err := dataset.Open(shards, 0, "none")
	if err != nil {
		t.Fatal(err)
	}
	given := enginetest.GivenTriples()
	if got := d.Topology.Edges(); got != int64(2*given[0]) {
		t.Errorf("predictions see %d edges, want %d", got, 2*given[0])
	}
}

// What does not fit triples is refused in a sentence.
func TestRefusalsOfTriples(t *testing.T) {
	given := enginetest.GivenTriples()
	about := dataset.About{Vertices: enginetest.TripleEntities, Edges: 2*given[0] + given[1] + given[2], Features: enginetest.TripleEntities, Relations: 2 * enginetest.TripleRelations, Triples: enginetest.TripleRelations, Given: given}
	for want, change := range map[string]func(r *recipe.Recipe, about *dataset.About){
		"": func(*recipe.Recipe, *dataset.About) {},
		"the dataset has triples, some of which are to be found out, and {task} is class: give {task} link":                             func(r *recipe.Recipe, a *dataset.About) { r.Learn(task.Named("class")); r.Links = nil; a.Classes = 3 },
		"the recipe learns triples with 4 relations, and those of the dataset have 5: choose the dataset that it was made for":          func(_ *recipe.Recipe, a *dataset.About) { a.Triples = 5 },
		"the recipe learns triples with relations, and the dataset has none with a given split: choose a dataset of the format triples": func(_ *recipe.Recipe, a *dataset.About) { a.Triples = 0 },
		"{link.decoder} is mlp, which knows no relations, and the dataset has triples: choose distmult":                                 func(r *recipe.Recipe, _ *dataset.About) { r.Links.Decoder = "mlp" },
		"{link.negatives} come from \"batch\", and those of triples replace heads and tails by any vertices: leave batch out":           func(r *recipe.Recipe, _ *dataset.About) { r.Links.From = "batch" },
		"{strategy} p3 learns no links, and the task is link: choose one of single, centric, leap, grappa":                              func(r *recipe.Recipe, _ *dataset.About) { r.Sharing.Strategy = "p3" },
		"{topology} is sharded, and {task} link is learnt where each node has all edges: leave it out":                                  func(r *recipe.Recipe, _ *dataset.About) { r.Sharing = strategy.Given("leap", "topology=sharded") },
		fmt.Sprintf("{batch} is %d, and the dataset has about %d edges for training at most", given[0], given[0]):                       func(r *recipe.Recipe, _ *dataset.About) { r.Batch = int(given[0]) },
		"pairs have 4 relations, and there may be 0 to 8192 with a given split":                                                         func(r *recipe.Recipe, _ *dataset.About) { r.Links.Given = nil },
		"the model tells 3 relations apart, and the edges of the dataset have 8: train it on the dataset that it was made for":          func(r *recipe.Recipe, _ *dataset.About) { r.Model.Relations = 3 },
	} {
		r, a := traintest.ExactRecipe("rgcn"), about
		triples(t, &r)
		change(&r, &a)
		err := r.Check(a, strategies.All)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	r := recipe.DefaultRecipe("rgcn")
	r.Learn(task.Named("link"))
	if err := r.LearnTriples(about, true); err == nil || err.Error() != "{edge-split} draws a split, and the triples of the dataset have one: leave it out" {
		t.Error(err)
	}
}

// Models of triples are neither evaluated nor trained on where edges mean something else, nor other
// models where they are triples.
func TestModelsOfTriplesKeepToTheirRelations(t *testing.T) {
	shards := enginetest.Triples(t, 2)
	fewer := enginetest.FromFile(t, readtest.Folder{"train.txt": entities("one"), "valid.txt": "e0\tone\te2\n"}.Write(t), 2)
	path := func(learn func(r *recipe.Recipe), on []*graph.Shard) string {
		r := traintest.ExactRecipe("sage")
		learn(&r)
		r.Links.Width, r.Links.Decoder, r.Batch, r.Epochs = 4, link.OfTriples, 20, 1
		dir := t.TempDir()
		traintest.MustRun(t, r, on, train.Options{Threads: 1, Dir: dir, Dataset: "d"})
		return filepath.Join(dir, train.CheckpointFile)
	}
	ofTriples := path(func(r *recipe.Recipe) { triples(t, r) }, shards)
	plain := path(func(r *recipe.Recipe) { r.Learn(task.Named("link")) }, untripled(t))
	for _, c := range []struct {
		model string
		on    []*graph.Shard
		want  string
	}{
		{ofTriples, shards, ""},
		{ofTriples, fewer, "the model has learned triples with 4 relations, and those of the dataset have 1: choose the dataset on which it was trained"},
		{ofTriples, untripled(t), "the model has learned triples with 4 relations, and the edges of the dataset are none: choose the dataset on which it was trained"},
		{plain, shards, "the model has learned links without relations, and the dataset has triples with 4 relations: choose a dataset without a given split"},
	} {
		_, err := trained.Evaluate(t.Context(), c.model, c.on, trained.EvaluateOptions{Index: trained.BestModel, Split: trained.TrainedSplit, Threads: 1})
		if fmt.Sprint(err) != cmp.Or(c.want, "<nil>") {
			t.Errorf("evaluated: %v, want %q", err, c.want)
		}
		w, err := trained.ReadWeighed(c.model, trained.BestModel)
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.Recipe()
		if err != nil {
			t.Fatal(err)
		}
		about, of := dataset.Describe(c.on), *r.Links
		if of.Relations, of.Given = about.Triples, nil; of.Relations > 0 {
			of.Given = enginetest.GivenTriples()
		}
		r.Links = &of
		if err := w.Starts(&r, about, nil); fmt.Sprint(err) != cmp.Or(c.want, "<nil>") {
			t.Errorf("started from: %v, want %q", err, c.want)
		}
	}
}

// entities returns lines of triples of one relation, in which there are as many entities as in the
// planted graph.
func entities(relation string) (lines string) {
	for i := range enginetest.TripleEntities {
		lines += fmt.Sprintf("e%d\t%s\te%d\n", i, relation, (i+1)%enginetest.TripleEntities)
	}
	return lines
}

// untripled returns shards whose edges have no relations, with the features of the planted graph.
func untripled(t *testing.T) []*graph.Shard {
	all := enginetest.Triples(t, 2)
	for i, s := range all {
		of := *s
		of.Related = nil
		of.Indices, of.Indptr = nil, []int64{0}
		for v := range of.Vertices {
			for _, step := range []int{1, 2, 5} {
				of.Indices = append(of.Indices, int32((int(of.First)+v+step)%int(of.Total)))
			}
			slices.Sort(of.Indices[of.Indptr[v]:])
			of.Indptr = append(of.Indptr, int64(len(of.Indices)))
		}
		all[i] = &of
	}
	return all
}
