package p3_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// pipelined trains an epoch in this process as one is trained with k steps under way,
// without any of p3: the first layer of step s has the weights before the update of step
// s-(k-1), or those that the epoch begins with; all else has those of now.
func pipelinedOf(ctx context.Context, t *train.Learner, epoch, k int) error {
	front, err := t.Model.Front()
	if err != nil {
		return err
	}
	t.At.Epoch = epoch
	t.Run.Batches.Shuffle(epoch)
	var before [][]float64 // the update of each step
	for step := range t.Run.Batches.Steps {
		before = append(before, traintest.NumbersOf(t))
		mixed, old := slices.Clone(before[step]), before[max(0, step-(k-1))]
		for _, term := range front.Terms {
			p := term.Param
			copy(mixed[p.Offset:][:p.Rows*p.Cols], old[p.Offset:])
		}
		t.Run.Device.Write(t.Weights, mixed)
		s := t.Run.Batches.Slots[0]
		t.Run.Batches.Set(s, step)
		if err := t.Run.Method.Prepare(ctx, t.Run.Batches.Workers[0], s, epoch); err != nil {
			return err
		}
		if _, wrong, _, err := traintest.BatchedOf(t).Compute(ctx, t, s, nil); err != nil || wrong != "" {
			return fmt.Errorf("%s: %w", wrong, err)
		}
		t.Run.Device.Write(t.Weights, before[step])
		t.Optimizer.Step(t.Weights, t.Gradients, t.Recipe.Schedule.Rate(t.Recipe.Rate, epoch, t.Recipe.Epochs, 0))
	}
	return nil
}

// Each step sees the weights of the update that it is said to see, and of no other.
func TestStepsUnderWaySeeOlderWeights(t *testing.T) {
	shards := traintest.Tiny(t, 90, 6)
	for _, model := range []string{"gcn", "sage"} {
		r := traintest.ExactRecipe(model)
		r.Model.Residual, r.Batch = model == "sage", 7
		for k := 1; k <= p3.MostInflight; k++ {
			want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
			for _, nodes := range []int{1, 2, 3} {
				shared := r
				shared.Sharing = traintest.Inflight(k, nodes != 2)
				m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes))
				all := m.Start(t, shared, shards, traintest.Columnwise(traintest.Wide(train.Options{Threads: 1})))
				want.Run.Device.Write(want.Weights, traintest.Initial(t, want.Model, r.Seed))
				for epoch := 1; epoch <= 2; epoch++ {
					if err := pipelinedOf(t.Context(), want, epoch, k); err != nil {
						t.Fatal(err)
					}
					err := m.Together(t, func(ctx context.Context, node int) error {
						all[node].At.Epoch, all[node].At.Step = epoch, 0
						return all[node].Run.Steps(ctx)
					})
					if err != nil {
						t.Fatal(err)
					}
					for node, tr := range all {
						if d := traintest.Distance(traintest.NumbersOf(tr), traintest.NumbersOf(want)); !(d < 1e-10) || tr.At.Under.Behind != k-1 || want.Run.Batches.Steps < 2*k {
							t.Fatalf("%s, %d under way on %d nodes: after %d steps of epoch %d node %d is %.3g off, and was %d updates behind",
								model, k, nodes, want.Run.Batches.Steps, epoch, node, d, tr.At.Under.Behind)
						}
					}
				}
			}
		}
	}
}

// The same bytes travel, weights are as much behind as they are said to be, and a run is
// the same each time; with --deterministic, on any number of nodes.
func TestStepsUnderWaySendTheSame(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for _, push := range []string{"resample", "blocks"} {
		var one []trained.Epoch
		for k := 1; k <= p3.MostInflight; k++ {
			r := traintest.Small("sage")
			r.Batch = 60
			ways := []string{fmt.Sprintf("p3.inflight=%d", k), "p3.push=" + push}
			got, again := epochsOf(t, r, shards, 3, ways...), epochsOf(t, r, shards, 3, ways...)
			if traintest.Learnt(got) != traintest.Learnt(again) {
				t.Errorf("%d under way make\n%s\nand again\n%s", k, traintest.Learnt(got), traintest.Learnt(again))
			}
			if k == 1 {
				one = got
			} else if got[0].Hash == one[0].Hash {
				t.Errorf("%d under way make the same weights as one", k)
			}
			for i, e := range got {
				if e.Behind != k-1 {
					t.Errorf("%d under way: epoch %d was %d updates behind", k, e.Epoch, e.Behind)
				}
				if e.Sent != one[i].Sent {
					t.Errorf("%d under way: epoch %d sends %+v, and one under way %+v", k, e.Epoch, e.Sent, one[i].Sent)
				}
			}
		}
	}
	r := traintest.Small("sage")
	r.Batch, r.Sharing = 60, traintest.Inflight(3, true)
	want := ""
	for _, nodes := range []int{1, 2, 5} {
		_, reports := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, traintest.Columnwise(train.Options{Threads: 2}))
		for node, got := range reports {
			if want == "" {
				want = traintest.Learnt(got)
			}
			if traintest.Learnt(got) != want || got[1].Behind != 2 {
				t.Errorf("node %d of %d:\n%s\nand one node\n%s", node, nodes, traintest.Learnt(got), want)
			}
		}
	}
}

// A step that is an epoch has nothing to be under way with, and one node that has nobody
// to wait for does not begin with it.
func TestOneStepIsUnderWayAlone(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("gcn")
	r.Batch, r.Fanouts = 0, nil
	one, three := epochsOf(t, r, shards, 3), epochsOf(t, r, shards, 3, "p3.inflight=3")
	if traintest.Learnt(one) != traintest.Learnt(three) || three[0].Behind != 0 {
		t.Errorf("%s\nand with three under way, %d behind,\n%s", traintest.Learnt(one), three[0].Behind, traintest.Learnt(three))
	}
	r = traintest.Small("gcn")
	if one, three = epochsOf(t, r, shards, 1), epochsOf(t, r, shards, 1, "p3.inflight=3"); traintest.Learnt(one) != traintest.Learnt(three) || three[0].Behind != 0 {
		t.Errorf("alone:\n%s\nand with three under way, %d behind,\n%s", traintest.Learnt(one), three[0].Behind, traintest.Learnt(three))
	}
}

// A checkpoint with another number of steps under way is of another run.
func TestOlderWeightsAreThoseOfTheRecipe(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("gcn")
	r.Sharing = traintest.Inflight(3, true)
	dir := t.TempDir()
	traintest.MustRun(t, r, shards, train.Options{Threads: 1, Dir: dir})
	r.Sharing = r.Sharing.With("p3.inflight=2")
	if _, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 1, Dir: dir, Resume: true}); err == nil || !strings.Contains(err.Error(), "another sharing") {
		t.Error(err)
	}
}

// It is said that gradients are not exact, and nothing is left behind when a run ends
// with steps under way.
func TestStepsUnderWayEndWithTheRun(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	before, reports := runtime.NumGoroutine(), 0
	for n := int64(40); n < 400; n += 90 {
		r := traintest.Small("gcn")
		r.Batch, r.Sharing = 60, traintest.Inflight(4, false)
		announced := make(chan train.Forecast, 3)
		m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
		_, _, err := m.Run(traintest.CancelAfter(t, m, n), r, shards, traintest.Columnwise(train.Options{Threads: 1, Announce: func(f train.Forecast) { announced <- f }}), nil)
		if !errors.Is(err, traintest.ErrEnough) {
			t.Fatal(err)
		}
		close(announced)
		for f := range announced {
			if len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "p3.inflight=4: first layers are computed with weights that are up to 3 updates old") {
				t.Errorf("the notes are %q", f.Notes)
			}
			reports++
		}
	}
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before && time.Now().Before(end); {
		runtime.Gosched()
	}
	if after := runtime.NumGoroutine(); after > before || reports == 0 {
		t.Errorf("%d goroutines are left, %d nodes began", after-before, reports)
	}
}

// Steps under way diverge in order: each node ends with the same step.
func TestStepsUnderWayDivergeTogether(t *testing.T) {
	shards := traintest.Spoilt(traintest.Communities(t, 1500), 1)
	r := traintest.Small("gcn")
	r.Batch, r.Sharing = 60, traintest.Inflight(3, false)
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	steps := make([]int, 3)
	err := m.Each(func(node int) error {
		held, own := m.Of(node, shards, traintest.Columnwise(train.Options{Threads: 1}))
		_, err := train.Run(t.Context(), r, held, own)
		e, ok := errors.AsType[*trained.Diverged](err)
		if !ok {
			return err
		}
		steps[node] = e.Step
		return nil
	})
	if err != nil || steps[0] == 0 || steps[0] != steps[1] || steps[0] != steps[2] {
		t.Errorf("nodes end at steps %v: %v", steps, err)
	}
}

// What one node has learned alone, several nodes go on from: its checkpoints hold the older
// weights that steps under way are sent with.
func TestSeveralNodesGoOnFromOne(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("gcn")
	r.Batch, r.Epochs, r.Sharing = 60, 4, traintest.Inflight(3, false)
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	ctx, cancel := context.WithCancelCause(t.Context())
	kept := 0
	_, err := train.Run(ctx, r, shards, train.Options{Strategies: strategies.All, Threads: 1, Dir: dirs[0], Interval: 1, Kept: func(error) {
		if kept++; kept == 6 {
			cancel(traintest.ErrEnough)
		}
	}})
	if !errors.Is(err, traintest.ErrEnough) {
		t.Fatal(err)
	}
	c, err := trained.OpenCheckpoint(filepath.Join(dirs[0], train.CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	if c.Models[0].State.Step == 0 {
		t.Error("the checkpoint is not of within an epoch: little is shown")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	_, epochs, err := m.Run(t.Context(), r, shards, traintest.Columnwise(train.Options{Threads: 1, Resume: true, Known: 1}), func(node int) string { return dirs[node] })
	if err != nil || len(epochs[0]) == 0 || epochs[0][len(epochs[0])-1].Epoch != r.Epochs {
		t.Errorf("%v, %v", epochs, err)
	}
}
