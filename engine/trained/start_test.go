package trained_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// drawn returns the weights that a seed draws.
func drawn(t *testing.T, r recipe.Recipe, about dataset.About) (weights []float32) {
	t.Helper()
	about = r.Sees(about)
	m, err := nn.New(r.Model, about.Features, about.Classes)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range traintest.Initial(t, m, r.Seed) {
		weights = append(weights, float32(x))
	}
	return weights
}

// from has a recipe start from weights.
func from(r recipe.Recipe, o train.Options, weights []float32) (recipe.Recipe, train.Options) {
	r.From = &recipe.From{Job: "j1", Key: "abcd1234", Weights: trained.Hash(weights)}
	for i := range r.Sweep {
		r.Sweep[i].Recipe.From = r.From
	}
	o.Weights = func(_ context.Context, from recipe.From) ([]float32, error) {
		if from != *r.From {
			return nil, fmt.Errorf("asked for %+v", from)
		}
		return weights, nil
	}
	return r, o
}

// Weights that a run starts from take the place of those that are drawn, and of nothing else:
// whatever the strategy, weights that the seed would have drawn change no bit, and others come to
// the same bits on any number of nodes.
func TestStartsFromWeights(t *testing.T) {
	shards := traintest.Tiny(t, 120, 5)
	for _, by := range []string{"single", "centric", "leap", "p3", "grappa", "graph", "pipe", "link"} {
		r := traintest.ExactRecipe("sage")
		r.Epochs, r.Fanouts = 2, nil
		r.Sharing.Strategy, r.Sharing.Deterministic = by, true
		switch by {
		case "graph", "pipe":
			r.Batch, r.Sharing = 0, r.Sharing.With("pipe.ways=1")
		case "link":
			r.Learn(task.Named("link"))
			r.Sharing.Strategy, r.Links.Width = "leap", 3
		}
		other := r
		other.Seed++
		weights := drawn(t, other, dataset.Describe(shards))
		hashes := map[string][]string{}
		for nodes := 1; nodes <= 3; nodes++ {
			if nodes > 1 && by == "single" {
				continue
			}
			learn := func(r recipe.Recipe, o train.Options) string {
				o.Threads, o.Strategies = 1, strategies.All
				_, all := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, o)
				return traintest.Hashes(all[0])
			}
			plain := learn(r, train.Options{})
			if same := learn(from(r, train.Options{}, drawn(t, r, dataset.Describe(shards)))); same != plain {
				t.Errorf("%s on %d nodes: from the weights that are drawn it comes to\n%s, and without to\n%s", by, nodes, same, plain)
			}
			tuned := learn(from(r, train.Options{}, weights))
			if tuned == plain {
				t.Errorf("%s on %d nodes: it makes no difference what it starts from", by, nodes)
			}
			hashes["plain"], hashes["tuned"] = append(hashes["plain"], plain), append(hashes["tuned"], tuned)
		}
		for what, of := range hashes {
			if len(slices.Compact(of)) != 1 && by != "pipe" { // whose stages depend on the nodes
				t.Errorf("%s, %s: the weights depend on the number of nodes: %v", by, what, of)
			}
		}
	}
}

// A run that was interrupted goes on from its checkpoint, and never asks for the weights again.
func TestAnInterruptedRunNeedsNoWeightsAgain(t *testing.T) {
	shards := traintest.Communities(t, 600)
	r := traintest.Swept(traintest.Small("sage"), "lr=0.01", "lr=0.02")
	other := r
	other.Seed, other.Sweep = 99, nil
	weights := drawn(t, other, dataset.Describe(shards))
	r, o := from(r, train.Options{Threads: 1, Strategies: strategies.All, Dataset: "d"}, weights)
	_, undisturbed := traintest.MustRun(t, r, shards, o)
	o.Dir, o.Resume = t.TempDir(), true
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o.Report = func(trained.Epoch) { cancel(enough) }
	if _, err := train.Run(ctx, r, shards, o); !errors.Is(err, enough) {
		t.Fatal(err)
	}
	o.Report, o.Weights = nil, func(context.Context, recipe.From) ([]float32, error) { return nil, errors.New("it is gone") }
	result, _ := traintest.MustRun(t, r, shards, o)
	if got, want := result.Models[1].Last.Hash, undisturbed[len(undisturbed)-1].Hash; got != want {
		t.Errorf("it came to %s, and undisturbed to %s", got, want)
	}
	for want, change := range map[string]func(o *train.Options){
		"start from the model of job j1: it is gone": func(*train.Options) {},
		"has other weights than when this job was created": func(o *train.Options) {
			o.Weights = func(context.Context, recipe.From) ([]float32, error) { return weights[1:], nil }
		},
		"job j1, which can't be had here": func(o *train.Options) { o.Weights = nil },
	} {
		fresh := o
		fresh.Dir = ""
		change(&fresh)
		if _, err := train.Run(t.Context(), r, shards, fresh); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// A model can start another of the same layers, shapes and task only.
func TestWhatCanStartFromAModel(t *testing.T) {
	shards := traintest.Communities(t, 300)
	dir := t.TempDir()
	r := traintest.Short("sage")
	traintest.MustRun(t, r, shards, train.Options{Threads: 1, Dir: dir})
	w, err := trained.ReadWeighed(filepath.Join(dir, train.CheckpointFile), trained.BestModel)
	if err != nil {
		t.Fatal(err)
	}
	was, err := w.Recipe()
	if err != nil || was.Model.Hidden != 12 || was.Features == "auto" {
		t.Errorf("%+v, %v", was, err)
	}
	about := dataset.Describe(shards)
	free := r
	free.Rate, free.Epochs, free.Batch, free.Model.Dropout, free.Seed = 1, 9, 0, 0, 8
	if err := w.Starts(&free, about, nil); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(r *recipe.Recipe, a *dataset.About){
		"reads 20 columns of features, and the dataset has 7":            func(_ *recipe.Recipe, a *dataset.About) { a.Features = 7 },
		"has 4 outputs, and the dataset has 5":                           func(_ *recipe.Recipe, a *dataset.About) { a.Classes = 5 },
		"has learned the task class, and this job's is link":             func(r *recipe.Recipe, _ *dataset.About) { r.Learn(task.Named("link")) },
		"has 12 for hidden, and this job's would have 13":                func(r *recipe.Recipe, _ *dataset.About) { r.Model.Hidden = 13 },
		"has sage for model, and this job's would have gcn":              func(r *recipe.Recipe, _ *dataset.About) { r.Model = recipe.DefaultRecipe("gcn").Model },
		"has mean for aggregator, and this job's would have max":         func(r *recipe.Recipe, _ *dataset.About) { r.Model.Aggregator = "max" },
		"has 2 for layers, and this job's would have 3: leave out what ": func(r *recipe.Recipe, _ *dataset.About) { r.Model.Layers = 3 },
	} {
		r, about := r, about
		change(&r, &about)
		if err := w.Starts(&r, about, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// A model that tells relations apart starts another on a dataset with as many only, which end at the
// same types.
func TestWhatCanStartFromAModelOfRelations(t *testing.T) {
	shards := traintest.Cut(t, enginetest.Typed("wrote", "edited", enginetest.Back+"wrote", enginetest.Back+"edited"), 4)
	about := dataset.Describe(shards)
	for _, model := range []string{"rgcn", "hetero:gcn"} {
		dir := t.TempDir()
		r := traintest.Short(model)
		r.Epochs = 1
		r.Model.Tell(4, "0,0,1,1")
		traintest.MustRun(t, r, shards, train.Options{Threads: 1, Dir: dir})
		w, err := trained.ReadWeighed(filepath.Join(dir, train.CheckpointFile), trained.BestModel)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Starts(&r, about, nil); err != nil {
			t.Error(err)
		}
		// On a dataset with fewer relations, and on one with as many that the recipe does not know.
		fewer, fewerAbout := r, dataset.Describe(traintest.Cut(t, enginetest.Typed("wrote", "edited"), 4))
		fewer.Model.Tell(2, "0,1")
		want := "the model tells 4 relations apart, and the edges of the dataset have 2: choose a dataset with the same types as that on which it was trained"
		if err := w.Starts(&fewer, fewerAbout, nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v does not say %q", model, err, want)
		}
		want = "the model has 4 for relations, and this job's would have 2"
		if err := w.Starts(&fewer, about, nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", model, err, want)
		}
		if model == "rgcn" {
			continue
		}
		other, elsewhere := r, about
		elsewhere.Ends = "1,1,0,0"
		other.Model.Tell(4, elsewhere.Ends)
		want = "the relations of the dataset end at other types than those that the model tells apart"
		if err := w.Starts(&other, elsewhere, nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", model, err, want)
		}
	}
}

// A model of links can start another with the same decoder only, since its weights are among those
// of the model.
func TestModelsOfLinksStartTheSameDecoder(t *testing.T) {
	shards := traintest.Communities(t, 300)
	about := dataset.Describe(shards)
	for _, decoder := range link.Decoders {
		dir := t.TempDir()
		r := traintest.Short("sage")
		r.Learn(task.Named("link"))
		r.Epochs, r.Links.Decoder = 1, decoder
		traintest.MustRun(t, r, shards, train.Options{Threads: 1, Dir: dir})
		w, err := trained.ReadWeighed(filepath.Join(dir, train.CheckpointFile), trained.BestModel)
		if err != nil {
			t.Fatal(err)
		}
		for _, now := range link.Decoders {
			links := *r.Links
			links.Decoder, r.Links = now, &links
			err := w.Starts(&r, about, nil)
			if same := now == decoder; same != (err == nil) || !same && err.Error() != fmt.Sprintf("the model decodes pairs by %s, and this job's would by %s: leave {link.decoder} out", decoder, now) {
				t.Errorf("%s from %s: %v", now, decoder, err)
			}
		}
		for split, want := range map[int]string{trained.TrainedSplit: "", 0: "", 1: "{split} is 1, and a model of {task} link"} {
			_, err := trained.Evaluate(t.Context(), filepath.Join(dir, train.CheckpointFile), shards, trained.EvaluateOptions{Split: split, Threads: 1})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("split %d: %v does not say %q", split, err, want)
			}
		}
	}
}
