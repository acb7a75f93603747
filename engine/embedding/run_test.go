package embedding_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// learning returns a recipe that learns rows of vertices in several steps an epoch.
func learning(model string) recipe.Recipe {
	r := traintest.Small(model)
	r.Embeddings, r.Rate, r.Batch, r.Epochs = 12, 0.02, 60, 5
	r.Optimizer.WeightDecay, r.Sharing.Deterministic = 0, true
	return r
}

// Labels that follow from who is whose neighbour are learnt without any features.
func TestAGraphWithoutFeaturesIsLearnt(t *testing.T) {
	shards := enginetest.Bare(t, 1000)
	for _, model := range []string{"gcn", "sage", "gat"} {
		r := learning(model)
		r.Epochs = 15
		result, _ := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
		if best := result.Best; best.Scores == nil || best.Scores.Test.Accuracy < 0.6 {
			t.Errorf("%s: %+v", model, best)
		}
	}
}

// All steps of a job on several nodes come to the bits of one node, whoever owns which shards,
// also where each step is the whole graph.
func TestRowsDoNotDependOnTheNodes(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	for name, change := range map[string]func(*recipe.Recipe){
		"batches": func(r *recipe.Recipe) { r.Model.InputDropout = 0.2 },
		"full":    func(r *recipe.Recipe) { r.Batch, r.Fanouts, r.Optimizer.Kind = 0, nil, "sgd" },
		"links": func(r *recipe.Recipe) {
			r.Learn(task.Named("link"))
			r.Links.Width = 8
		},
	} {
		r := learning("sage")
		r.Epochs = 3
		change(&r)
		_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
		for nodes := 2; nodes <= 5; nodes++ {
			for how, sharing := range traintest.Sharings(nodes) {
				if nodes == 4 || nodes == 3 && how == "centric" {
					continue
				}
				r.Sharing = sharing
				r.Sharing.Deterministic = true
				_, reports := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, train.Options{Threads: 1})
				for node, got := range reports {
					if traintest.Learnt(got) != traintest.Learnt(one) {
						t.Errorf("%s, node %d of %d by %s:\n%sand one node:\n%s", name, node, nodes, how, traintest.Learnt(got), traintest.Learnt(one))
					}
				}
			}
		}
	}
}

// bothWays are the relations of a planted typed graph, in which the vertices of one type have no
// features.
var bothWays = []string{"wrote", "edited", enginetest.Back + "wrote", enginetest.Back + "edited"}

// typedRows returns a recipe that learns rows of that type.
func typedRows(model string) recipe.Recipe {
	r := learning(model)
	r.Model.Tell(4, "0,0,1,1")
	r.Bare, r.Epochs = []int{0}, 3
	return r
}

// Only vertices of the types without features learn rows, which are the same on any number of nodes,
// and the model has them.
func TestRowsOfATypeWithoutFeatures(t *testing.T) {
	shards := enginetest.Cut(t, enginetest.Typed(bothWays...), 5, "")
	for _, model := range []string{"rgcn", "hetero:sage", "sage"} {
		r, dir := typedRows(model), t.TempDir()
		if model == "sage" {
			r.Model.Relations, r.Model.Ends = 0, ""
		}
		l := traintest.Started(t, r, shards, train.Options{Threads: 1})
		first := slices.Clone(l.Rows.Numbers())
		traintest.KeepIn(l.Run, dir)
		if err := l.Run.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows, papers := l.Rows.Numbers(), 0
		for _, s := range shards {
			for v := range s.Vertices {
				at := (int(s.First) + v) * r.Embeddings
				of, was := rows[at:][:r.Embeddings], first[at:][:r.Embeddings]
				paper := s.Dense[3*v] != 0
				zeros := !slices.ContainsFunc(of, func(x float32) bool { return x != 0 })
				if paper == zeros {
					t.Fatalf("%s: vertex %d, paper %v, has the row %g", model, int(s.First)+v, paper, of)
				}
				if paper && !slices.Equal(of, was) { // others are read by no step
					papers++
				}
			}
		}
		if papers < 200 {
			t.Fatalf("rows of %d papers are learnt", papers)
		}
		want := l.History
		for _, nodes := range []int{2, 5} {
			r.Sharing = strategy.Given("leap")
			r.Sharing.Deterministic = true
			_, reports := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, train.Options{Threads: 1})
			for node, got := range reports {
				if traintest.Learnt(got) != traintest.Learnt(want) {
					t.Errorf("%s, node %d of %d:\n%sand one node:\n%s", model, node, nodes, traintest.Learnt(got), traintest.Learnt(want))
				}
			}
		}
		path := filepath.Join(dir, train.CheckpointFile)
		e, err := trained.Evaluate(t.Context(), path, shards, trained.EvaluateOptions{Index: trained.BestModel, Split: trained.TrainedSplit, Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		if best := l.At.Best; e.Test.Metrics[task.Accuracy] != best.Scores.Test.Accuracy {
			t.Errorf("%s: it scores %v, and its best epoch did %v", model, e.Test, best.Scores.Test)
		}
		var exported bytes.Buffer
		if err := trained.Export(&exported, path, trained.BestModel); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "model.safetensors")
		if err := os.WriteFile(file, exported.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		predicted, _ := traintest.Predicted(t, dir, shards, train.Options{Threads: 1}, trained.PredictOptions{Index: trained.BestModel})
		if again, _ := traintest.Predicted(t, file, shards, train.Options{Threads: 1}, trained.PredictOptions{Index: trained.BestModel}); !slices.Equal(again, predicted) {
			t.Errorf("%s: the exported model predicts something else", model)
		}
	}
}

// Without --deterministic all nodes have the same rows, and they are those of one node but for the
// order of sums.
func TestNodesKeepTheSameRows(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	r := learning("gcn")
	r.Epochs, r.Optimizer.Kind, r.Rate, r.Sharing.Deterministic = 1, "sgd", 0.3, false
	rows := func(all []*train.Learner) []float32 {
		for _, l := range all[1:] {
			if !slices.Equal(l.Rows.Numbers(), all[0].Rows.Numbers()) {
				t.Error("nodes have different rows")
			}
		}
		return all[0].Rows.Numbers()
	}
	one := traintest.Started(t, r, shards, train.Options{Threads: 1})
	first := slices.Clone(one.Rows.Numbers())
	if err := one.Run.Epoch(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := rows([]*train.Learner{one})
	hash := one.Hash()
	want[5]++
	if one.Hash() == hash {
		t.Error("nodes would not notice that their rows differ")
	}
	want[5]--
	for how, sharing := range traintest.Sharings(3) {
		r.Sharing = sharing
		m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
		all := m.Start(t, r, shards, train.Options{Threads: 1})
		if err := m.Together(t, func(ctx context.Context, node int) error { return all[node].Run.Epoch(ctx) }); err != nil {
			t.Fatal(err)
		}
		off, moved := float32(0), float32(0)
		for i, x := range rows(all) {
			off, moved = max(off, x-want[i], want[i]-x), max(moved, x-first[i], first[i]-x)
		}
		if off > 1e-4*moved || moved == 0 {
			t.Errorf("%s: rows are %g off, and moved by up to %g", how, off, moved)
		}
	}
}

// A run goes on from its checkpoint to the same bits, wherever it is interrupted.
func TestAnInterruptedRunGoesOn(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	for _, optimizer := range []string{"adam", "sgd"} {
		r := learning("gcn")
		r.Optimizer.Kind = optimizer
		_, want := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
		for stop := range 4 {
			dir := t.TempDir()
			ctx, cancel := context.WithCancelCause(t.Context())
			steps := 0
			o := train.Options{Threads: 1, Dir: dir, Dataset: "d", Resume: true, Strategies: strategies.All, Interval: 1}
			tr := traintest.Started(t, r, shards, o)
			next := tr.Run.Method
			tr.Run.Method = &counted{next, func() {
				if steps++; steps == 3+5*stop {
					cancel(traintest.ErrEnough)
				}
			}}
			if err := tr.Run.Train(ctx); !errors.Is(err, traintest.ErrEnough) {
				t.Fatal(err)
			}
			got := map[int]trained.Epoch{}
			for _, e := range tr.History {
				got[e.Epoch] = e
			}
			_, rest := traintest.MustRun(t, r, shards, o)
			for _, e := range rest {
				got[e.Epoch] = e
			}
			var all []trained.Epoch
			for epoch := range r.Epochs {
				all = append(all, got[epoch+1])
			}
			if traintest.Learnt(all) != traintest.Learnt(want) {
				t.Errorf("%s, interrupted in step %d:\n%sand at once:\n%s", optimizer, 3+5*stop, traintest.Learnt(all), traintest.Learnt(want))
			}
		}
	}
}

// counted is a method that calls step when it begins one.
type counted struct {
	train.Method
	step func()
}

func (c *counted) Common(l *train.Learner) bool {
	c.step()
	return c.Method.Common(l)
}

// Any node of a mesh may be lost within a step: the others go on from there, at most a step back,
// without what it had, and come to the same bits.
func TestANodeIsLost(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	r := learning("sage")
	_, want := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
	r.Sharing = strategy.Given("leap")
	r.Sharing.Deterministic = true
	random := rand.New(rand.NewPCG(3, 4))
	for lost := range 3 {
		folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All}
		m := traintest.NewMesh(3, []int{0, 1, 2, 0, 1})
		all := m.Start(t, r, shards, o)
		for node, l := range all {
			traintest.KeepIn(l.Run, folders[node])
		}
		ctx := traintest.CancelInEpochs(t, m, 150+random.Int64N(200))
		if err := m.Each(func(node int) error { return all[node].Run.Train(ctx) }); !errors.Is(err, traintest.ErrEnough) {
			t.Fatal(err)
		}
		steps := all[lost].Run.Batches.Steps
		done := (all[lost].At.Epoch-1)*steps + all[lost].At.Step
		rest := slices.Delete(folders, lost, lost+1) // all that it knew is gone
		o.Resume = true
		o.Announce = func(f train.Forecast) {
			if at := f.Resumed*steps + f.Step; at < done-1 || at > done+1 {
				t.Errorf("node %d had done %d steps, and the others go on after %d", lost, done, at)
			}
		}
		_, reports, err := traintest.NewMesh(2, []int{0, 1, 1, 0, 1}).Run(t.Context(), r, shards, o, func(node int) string { return rest[node] })
		if err != nil {
			t.Fatal(err)
		}
		undisturbed(t, fmt.Sprint("without node ", lost), reports, want)
	}
}

// A trained model predicts, is evaluated and exported with the rows of its best epoch, and is of no
// use for the vertices of another graph.
func TestAModelHasItsRows(t *testing.T) {
	shards, r, dir := enginetest.Bare(t, 600), learning("gcn"), t.TempDir()
	r.Epochs = 6
	result, _ := traintest.MustRun(t, r, shards, train.Options{Threads: 2, Dir: dir, Dataset: "d"})
	path := filepath.Join(dir, train.CheckpointFile)
	e, err := trained.Evaluate(t.Context(), path, shards, trained.EvaluateOptions{Index: trained.BestModel, Split: trained.TrainedSplit, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	if e.Epoch != result.Best.Epoch || e.Test.Metrics[task.Accuracy] != result.Best.Scores.Test.Accuracy {
		t.Errorf("it scores %+v, and epoch %d did %+v", e, result.Best.Epoch, result.Best.Scores.Test)
	}
	predicted, about := traintest.Predicted(t, dir, shards, train.Options{Threads: 2}, trained.PredictOptions{Index: trained.BestModel})
	if about.Vertices != 600 || about.Epoch != result.Best.Epoch {
		t.Errorf("predicted is %+v", about)
	}
	var exported bytes.Buffer
	if err := trained.Export(&exported, path, trained.BestModel); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(file, exported.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, _ := traintest.Predicted(t, file, shards, train.Options{Threads: 1}, trained.PredictOptions{Index: trained.BestModel}); !slices.Equal(again, predicted) {
		t.Error("the exported model predicts something else")
	}
	f, err := checkpoint.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := embedding.Param(600, r.Embeddings)
	if rows, err := f.View("", &p); err != nil || len(rows) != 600*r.Embeddings {
		t.Errorf("%d numbers of rows: %v", len(rows), err)
	}
	if text := f.Text("equations"); !strings.Contains(text, "the row of embedding.weight") {
		t.Errorf("it is described as %s", text)
	}
	const say = "the model has learned a row of each of the 600 vertices"
	for name, other := range map[string][]*graph.Shard{"of another size": enginetest.Bare(t, 601), "with features": enginetest.Communities(t, 600)} {
		err := trained.Predict(t.Context(), file, other, trained.PredictOptions{Threads: 1}, func(trained.Prediction) error { return nil }, func(int, []float32) error { return nil })
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("of a graph %s: %v", name, err)
		}
	}
	w, err := trained.ReadWeighed(path, trained.BestModel)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Starts(&r, dataset.Describe(shards), nil); err == nil || !strings.Contains(err.Error(), "learnt anew in each job") {
		t.Errorf("a job starts from it: %v", err)
	}
}

// What can't be learnt is refused, in a sentence.
func TestWhatIsRefused(t *testing.T) {
	bare := dataset.Describe(enginetest.Bare(t, 100))
	for want, change := range map[string]func(r *recipe.Recipe, a *dataset.About){
		"": func(*recipe.Recipe, *dataset.About) {},
		"the dataset has no features for the model to read, and {train.embeddings} is off: leave that out":                      func(r *recipe.Recipe, _ *dataset.About) { r.Embeddings = 0 },
		"{train.embeddings} is -1: give 1 to 4096 columns, or off":                                                              func(r *recipe.Recipe, _ *dataset.About) { r.Embeddings = -1 },
		"{train.embeddings} is 4097: give 1 to 4096 columns, or off":                                                            func(r *recipe.Recipe, _ *dataset.About) { r.Embeddings = 4097 },
		"{train.embeddings} is for vertices without features, and all of this dataset's have 3 columns of them: leave it out":   func(_ *recipe.Recipe, a *dataset.About) { a.Features = 3 },
		"the columns [5] say which vertices have no features, and the dataset has 3":                                            func(r *recipe.Recipe, a *dataset.About) { a.Features, r.Bare = 3, []int{5} },
		"{train.momentum} moves rows that no step has touched":                                                                  func(r *recipe.Recipe, _ *dataset.About) { r.Optimizer = nn.OptimizerSpec{Kind: "sgd", Momentum: 0.9} },
		"{normalize-features} is row, and rows that are learnt are not normalised: leave it out":                                func(r *recipe.Recipe, _ *dataset.About) { r.Features = "row" },
		"a job with {train.embeddings} starts from no other":                                                                    func(r *recipe.Recipe, _ *dataset.About) { r.From = &recipe.From{Job: "j1"} },
		"{strategy} p3 learns no rows of vertices, as {train.embeddings} asks for: choose one of single, centric, leap, grappa": func(r *recipe.Recipe, _ *dataset.About) { r.Sharing.Strategy = "p3" },
		"{train.embeddings_at} is owners, who are asked for rows in each step, and groups of grappa train in isolation": func(r *recipe.Recipe, _ *dataset.About) {
			r.EmbeddingsAt, r.Sharing.Strategy = recipe.AtOwners, "grappa"
		},
		"{grappa.phases} is 2, and rows of vertices that {train.embeddings} learns are read all at once": func(r *recipe.Recipe, _ *dataset.About) {
			r.Sharing = strategy.Given("grappa", "grappa.phases=2")
		},
		"grappa.average_every is 3, and {train.embeddings} learns rows of vertices, which are updated in each step": func(r *recipe.Recipe, _ *dataset.About) {
			r.Sharing = strategy.Given("grappa", "grappa.average_every=3")
		},
		"{strategy} pipe learns no rows of vertices, as {train.embeddings} asks for: choose one of single, centric, leap, grappa": func(r *recipe.Recipe, _ *dataset.About) { r.Sharing.Strategy = "pipe" },
		"{strategy} auto learns no rows of vertices, as {train.embeddings} asks for: choose one of single, centric, leap, grappa": func(r *recipe.Recipe, _ *dataset.About) { r.Sharing.Strategy = "auto" },
		"{leap.sync_every} is 3, and {train.embeddings} learns rows of vertices, which are updated in each step":                  func(r *recipe.Recipe, _ *dataset.About) { r.Sharing = strategy.Given("leap", "leap.sync_every=3") },
		"{sweep} train.embeddings: rows of vertices are learnt for one model: start one job for each value":                       func(r *recipe.Recipe, _ *dataset.About) { *r = traintest.Swept(*r, "lr=0.1", "lr=0.2") },
	} {
		r, about := learning("gcn"), bare
		change(&r, &about)
		err := r.Check(about, strategies.All)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// Rows and moments are forecast before any memory is taken.
func TestRowsAreForecast(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	r := learning("gcn")
	r.Embeddings = 4096
	_, err := train.NewTrainer(t.Context(), r, shards, train.Options{Threads: 1, Memory: 50 << 20, Strategies: strategies.All})
	if err == nil || !strings.Contains(err.Error(), "memory") {
		t.Errorf("a table of %d bytes and 50 MiB: %v", embedding.Bytes(600, 0, 4096, r.Optimizer), err)
	}
}

// What a step sends is the gradients of the rows that it reads, to each of the other nodes.
func TestWhatAStepSends(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	r := learning("gcn")
	r.Epochs, r.Sharing.Deterministic = 2, false
	r.Sharing = strategy.Given("leap", "leap.mode=stay")
	_, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, train.Options{Threads: 1})
	for _, e := range reports[0] {
		if e.Sent.Bytes[peer.Feature] != 0 || e.Rows.Remote != 0 || e.Rows.Local == 0 {
			t.Errorf("epoch %d brings rows of features: %+v, %+v", e.Epoch, e.Rows, e.Sent)
		}
		rows := uint64(2*4*(1+r.Embeddings)) * e.Rows.Local
		if got := e.Sent.Bytes[peer.Gradient]; got < rows || got > rows+rows/2+1<<20 {
			t.Errorf("epoch %d sends %d bytes of gradients, of which rows are %d", e.Epoch, got, rows)
		}
	}
}
