package trained_test

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// targeted makes a graph with targets of a kind, in three shards.
func targeted(t *testing.T, kind *task.Kind, features, columns int) []*graph.Shard {
	t.Helper()
	made, err := generate.New(generate.Options{
		Kind: "sbm", Vertices: 400, Edges: 1600, Features: features, Classes: columns, Communities: 6, Inside: 0.8, Homophily: 0.8, Seed: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	if kind.Targets == graph.OneClass || kind.Pairs {
		return traintest.Cut(t, made, 3)
	}
	return traintest.Cut(t, enginetest.WithTargets(made, kind.Targets, columns, func(v, c int) float64 {
		return float64((int(made.Labels()[v]) + c) % 2)
	}), 3)
}

// On its own dataset a model scores what it scored when it was trained, whatever the task, and
// also in little memory.
func TestEvaluatesAsTrainingDid(t *testing.T) {
	for _, kind := range task.Kinds {
		shards := targeted(t, kind, 8, 4)
		r := traintest.Small("gcn")
		r.Learn(kind)
		r.Batch = 100
		dir := t.TempDir()
		result, _ := traintest.MustRun(t, r, shards, train.Options{Threads: 1, Dir: dir})
		for _, memory := range []uint64{0, 512 << 20} {
			e, err := trained.Evaluate(t.Context(), filepath.Join(dir, train.CheckpointFile), shards,
				trained.EvaluateOptions{Index: trained.BestModel, Split: trained.TrainedSplit, Threads: 1, Memory: memory, Dir: t.TempDir()})
			if err != nil {
				t.Fatal(kind.Name, err)
			}
			if e.Task != kind || e.Metric != r.Metric || e.Epoch != result.Best.Epoch || e.Test.Count == 0 {
				t.Errorf("%s: %+v", kind.Name, e)
			}
			want := result.Best.Scores
			if kind.Accuracy {
				if e.Val.Metrics[task.Accuracy] != want.Val.Accuracy || e.Test.Metrics[task.MacroF1] != want.Test.MacroF1 || e.Train.Metrics[task.Accuracy] != want.Train.Accuracy {
					t.Errorf("%s: %+v, and in training %+v", kind.Name, e, want)
				}
			} else if !maps.Equal(e.Test.Metrics, want.Metrics.Test) || !maps.Equal(e.Val.Metrics, want.Metrics.Val) || len(e.Test.Metrics) == 0 {
				t.Errorf("%s: %+v, and in training %+v", kind.Name, e, want.Metrics)
			}
		}
		_, err := trained.Evaluate(t.Context(), filepath.Join(dir, train.CheckpointFile), shards,
			trained.EvaluateOptions{Split: trained.TrainedSplit, Threads: 1, Memory: 1 << 20})
		if err == nil || !strings.Contains(err.Error(), "allow more with {agent.memory}") {
			t.Errorf("%s in a MiB: %v", kind.Name, err)
		}
	}
}

// A dataset that a model can't be compared with is refused in a sentence.
func TestWhatCannotBeEvaluated(t *testing.T) {
	class, labels := task.Named("class"), task.Named("multilabel")
	r := traintest.Short("sage")
	dir := t.TempDir()
	names := []string{"a", "b", "c", "d"}
	own := targeted(t, class, 8, 4)
	traintest.MustRun(t, r, own, train.Options{Threads: 1, Dir: dir, ClassNames: names})
	evaluate := func(shards []*graph.Shard, split int, names []string) error {
		_, err := trained.Evaluate(t.Context(), filepath.Join(dir, train.CheckpointFile), shards, trained.EvaluateOptions{Split: split, ClassNames: names, Threads: 1})
		return err
	}
	for _, known := range [][]string{nil, names, names[:2]} {
		if err := evaluate(own, 0, known); err != nil {
			t.Errorf("%v: %v", known, err)
		}
	}
	if err := evaluate(targeted(t, class, 8, 3), 0, nil); err != nil {
		t.Errorf("a dataset without the last class: %v", err)
	}
	without := targeted(t, class, 8, 4)
	for _, s := range without {
		s.Marks = nil
	}
	huge := targeted(t, class, 8, 4)
	for _, s := range huge {
		s.Dense = slices.Repeat([]float32{math.MaxFloat32}, len(s.Dense))
	}
	for want, err := range map[string]error{
		"the outputs of the model are not all finite there":            evaluate(huge, 0, nil),
		"the model reads 8 columns of features, and the dataset has 9": evaluate(targeted(t, class, 9, 4), 0, nil),
		"the model has 4 outputs, and the dataset has 5":               evaluate(targeted(t, class, 8, 5), 0, nil),
		"and the dataset has other targets (multilabel)":               evaluate(targeted(t, labels, 8, 4), 0, nil),
		"{split} is 3":             evaluate(own, 3, nil),
		"the dataset has no split": evaluate(without, 0, nil),
		`output 1 of the model is "b", and the dataset's is "c": choose`: evaluate(own, 0, []string{"a", "c", "b", "d"}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// What a model has learnt on a part of a graph it does on the unseen rest: within two points of a
// model that was trained on all of it. Both are scored in the whole graph, with the same recipe.
func TestUnseenVerticesScoreAsSeenOnes(t *testing.T) {
	made, err := generate.New(generate.Options{
		Kind: "sbm", Vertices: 3000, Edges: 24000, Features: 16, Classes: 5, Communities: 10, Inside: 0.85, Homophily: 0.85, Seed: 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	// Three tenths of the vertices are new: a part of the graph is without them, and half of them
	// are for training in all of it. The other half is scored.
	seen := func(v int) bool { return v%10 < 7 }
	half := func(v int) bool { return v%20 < 10 }
	used := func(v int) graph.Mark {
		switch {
		case !seen(v) && !half(v):
			return graph.Unmarked
		case v%7 == 0:
			return graph.Validation
		}
		return graph.Train
	}
	all := enginetest.Marked(made, used)
	part := traintest.Cut(t, enginetest.Part(all, seen), 4)
	whole := traintest.Cut(t, all, 4)
	scored := traintest.Cut(t, enginetest.Marked(made, func(v int) graph.Mark {
		if seen(v) || half(v) {
			return graph.Unmarked
		}
		return graph.Test
	}), 4)
	r := recipe.DefaultRecipe("sage")
	r.Model.Hidden, r.Epochs, r.Seed = 32, 60, 1
	score := func(on []*graph.Shard) float64 {
		dir := t.TempDir()
		traintest.MustRun(t, r, on, train.Options{Threads: 2, Dir: dir})
		e, err := trained.Evaluate(t.Context(), filepath.Join(dir, train.CheckpointFile), scored, trained.EvaluateOptions{Index: trained.BestModel, Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		if e.Test.Count < 100 || e.Train.Count != 0 {
			t.Fatalf("%+v", e)
		}
		return e.Test.Metrics[task.Accuracy]
	}
	ofPart, ofAll := score(part), score(whole)
	t.Logf("unseen vertices: %.4f by a model of a part, %.4f by one of all", ofPart, ofAll)
	if ofPart < ofAll-0.02 || ofAll < 0.8 {
		t.Errorf("a model of a part scores %.4f on unseen vertices, and one of all %.4f", ofPart, ofAll)
	}
}
