package traintest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Within fails the test unless the gradients and losses of some steps on each of several
// nodes are those of one node, want, up to the relative distance most.
func Within(t *testing.T, name string, r recipe.Recipe, shards []*graph.Shard, o train.Options, nodes int, want *train.Learner, most float64) {
	t.Helper()
	m := NewMesh(nodes, Uneven(len(shards), nodes))
	all := m.Start(t, r, shards, o)
	Alike(t, name, m, all, want, most)
}

// Alike is Within of nodes that are about to train.
func Alike(t *testing.T, name string, m *Mesh, all []*train.Learner, want *train.Learner, most float64) {
	t.Helper()
	begin := Initial(t, want.Model, want.Recipe.Seed)
	want.Run.Device.Write(want.Weights, begin)
	if want.Rows != nil {
		want.Rows.Reset() // earlier comparisons have moved them
	}
	for at, step := range []int{0, want.Run.Batches.Steps - 1} {
		expected, err := StepOnce(t.Context(), want, 1+at, step)
		if err != nil {
			t.Fatal(err)
		}
		losses := make([]float64, len(all))
		err = m.Each(func(node int) (err error) {
			losses[node], err = StepOnce(t.Context(), all[node], 1+at, step)
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for node, tr := range all {
			if d := Distance(GradientOf(tr), GradientOf(want)); !(d <= most) || math.Abs(losses[node]-expected) > (most+1e-7)*expected {
				t.Fatalf("%s, node %d, step %d: the gradient is %.3g off, the loss %g in place of %g", name, node, step, d, losses[node], expected)
			}
		}
	}
}

// Distance returns the Euclidean distance of a and b, relative to the length of b.
func Distance(a, b []float64) float64 {
	sum, of := 0.0, 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
		of += b[i] * b[i]
	}
	return math.Sqrt(sum / of)
}

// Initial returns the weights that a model begins with.
func Initial(t testing.TB, m *nn.Model, seed uint64) []float64 {
	t.Helper()
	w, err := m.Initial(t.Context(), seed)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Learnt returns a text of what epochs must have in common on all nodes and, where
// gradients are added up by grains, on any number of nodes.
func Learnt(all []trained.Epoch) string {
	var text strings.Builder
	for _, e := range all {
		fmt.Fprintf(&text, "%d: %v %v %s", e.Epoch, e.Loss, e.Rate, e.Hash)
		if e.Eval != nil {
			fmt.Fprint(&text, " ", e.Scores.Train, e.Scores.Val, e.Scores.Test)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// NumbersOf returns the weights of a learner.
func NumbersOf(t *train.Learner) []float64 {
	w := make([]float64, t.Model.Size())
	t.Run.Device.Read(w, t.Weights)
	return w
}

// Predicted returns all that trained.Predict passes on of a checkpoint, or of the one in a
// folder.
func Predicted(t *testing.T, dir string, shards []*graph.Shard, o train.Options, p trained.PredictOptions) (all []float32, at trained.Prediction) {
	t.Helper()
	path := dir
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		path = fmt.Sprintf("%s/%s", dir, train.CheckpointFile)
	}
	p.Threads, p.Memory, p.Dir, p.Device = o.Threads, o.Memory, o.Dir, o.Device
	err := trained.Predict(t.Context(), path, shards, p,
		func(what trained.Prediction) error { at = what; return nil },
		func(first int, rows []float32) error {
			if first*at.Columns != len(all) {
				t.Errorf("rows of %d come after %d numbers", first, len(all))
			}
			all = append(all, rows...)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return all, at
}

// Ends runs a job whose recipe, shards and options change may alter on each node. It
// returns the error of each.
func Ends(t *testing.T, m *Mesh, shards []*graph.Shard, change func(node int, r *recipe.Recipe, held []*graph.Shard, o *train.Options)) []error {
	t.Helper()
	errs := make([]error, len(m.Names))
	m.Each(func(node int) error { //nolint:errcheck // each node's error is returned by itself
		r := Short("gcn")
		r.Sharing = Ways()["leap"]
		held, o := m.Of(node, shards, train.Options{Threads: 1, Dataset: "d", Resume: true})
		change(node, &r, held, &o)
		_, errs[node] = train.Run(t.Context(), r, held, o)
		return nil
	})
	return errs
}

// Spoilt returns the shards, of which one has features that are infinite.
func Spoilt(shards []*graph.Shard, at int) []*graph.Shard {
	all := slices.Clone(shards)
	s := *shards[at]
	s.Dense = slices.Clone(s.Dense)
	for i := range s.Dense {
		s.Dense[i] = float32(math.Inf(1))
	}
	all[at] = &s
	return all
}

// Remarked changes the labels and marks of shards by a function.
func Remarked(shards []*graph.Shard, change func(v int, label *int32, mark *graph.Mark)) {
	for _, s := range shards { // what is mapped can't be written to
		s.Labels, s.Marks = slices.Clone(s.Labels), [][]graph.Mark{slices.Clone(s.Marks[0])}
		for row := range s.Labels {
			change(int(s.First)+row, &s.Labels[row], &s.Marks[0][row])
		}
	}
}

// Left trains one epoch on all nodes, calls change, and returns the folders with the
// nodes' checkpoints.
func Left(t *testing.T, m *Mesh, r recipe.Recipe, change func(node int, tr *train.Learner)) []string {
	t.Helper()
	shards := Communities(t, 1500)
	folders := make([]string, len(m.Names))
	for i := range folders {
		folders[i] = t.TempDir()
	}
	all := m.Start(t, r, shards, train.Options{Threads: 1, Dataset: "d"})
	err := m.Each(func(node int) error {
		tr := all[node]
		if err := tr.Run.Epoch(t.Context()); err != nil {
			return err
		}
		change(node, tr)
		KeepIn(tr.Run, folders[node])
		return tr.Run.Save()
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// KeepIn makes a run that was started without a folder keep its checkpoints in one.
func KeepIn(tr *train.Trainer, dir string) {
	tr.Options.Dir = dir
	tr.Checkpoints = tr.NewFolder()
}

// Again returns the models of a mesh that resumes from the folders that Left returns.
func Again(t *testing.T, m *Mesh, r recipe.Recipe, folders []string) []*train.Learner {
	t.Helper()
	shards := Communities(t, 1500)
	all := make([]*train.Learner, len(m.Names))
	err := m.Each(func(node int) error {
		held, o := m.Of(node, shards, train.Options{Threads: 1, Dataset: "d", Resume: true, Dir: folders[node]})
		tr, err := train.NewTrainer(t.Context(), r, held, o)
		if err != nil {
			return err
		}
		all[node] = tr.Learners[0]
		return tr.Meet(t.Context())
	})
	t.Cleanup(func() {
		for _, tr := range all {
			if tr != nil {
				tr.Run.Close()
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// GoesOn fails the test unless the checkpoint that a diverged run names is good: it
// exists, its numbers are finite, and again makes at least one step from it at a smaller
// rate.
func GoesOn(t *testing.T, d *trained.Diverged, again func(rate float64) error) {
	t.Helper()
	c, err := trained.OpenCheckpoint(d.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if at := c.Models[0].State; at.Epoch != d.CheckpointEpoch || at.Step != d.CheckpointStep || !strings.Contains(d.Error(), d.Checkpoint) {
		t.Errorf("the checkpoint stands at epoch %d, step %d; %v", at.Epoch, at.Step, d)
	}
	file, err := safetensors.Open(d.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, tensor := range file.Tensors() {
		numbers, _, err := safetensors.View[float32](file, tensor.Name)
		if err != nil || slices.ContainsFunc(numbers, func(x float32) bool { return !train.IsNumber(float64(x)) }) {
			t.Errorf("%s of the checkpoint is not finite, %v", tensor.Name, err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(d.Checkpoint)); err != nil || len(left) != 1 {
		t.Errorf("left is %v, %v", left, err)
	}
	if later, ok := errors.AsType[*trained.Diverged](again(1e-9)); ok && later.Epoch == d.CheckpointEpoch && later.Step <= d.CheckpointStep+1 {
		t.Errorf("%v; and then %v", d, later)
	}
}

// CancelAfter returns a context that ends after so many questions between nodes.
func CancelAfter(t *testing.T, m *Mesh, questions int64) context.Context {
	return cancelAfterThose(t, m, questions, func(peer.Query) bool { return true })
}

// CancelInEpochs is CancelAfter, counting the questions of epochs alone: how many nodes
// ask each other to measure the network depends on time.
func CancelInEpochs(t *testing.T, m *Mesh, questions int64) context.Context {
	return cancelAfterThose(t, m, questions, func(q peer.Query) bool { return q.Epoch > 0 })
}

// ErrEnough is the cause of the contexts of CancelAfter and CancelInEpochs.
var ErrEnough = errors.New("enough")

func cancelAfterThose(t *testing.T, m *Mesh, questions int64, counts func(peer.Query) bool) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	var left atomic.Int64
	left.Store(questions)
	m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
		if counts(q) && left.Add(-1) == 0 {
			cancel(ErrEnough)
		}
		return nil
	}
	return ctx
}
