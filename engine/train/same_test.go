package train_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A batch of all training vertices is the full batch, however its neighbours are
// asked for.
func TestABatchOfAllIsTheFullBatch(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	full := traintest.Small("gcn")
	full.Batch, full.Fanouts = 0, nil
	_, want := traintest.MustRun(t, full, shards, train.Options{Threads: 2})
	for name, change := range map[string]func(r *recipe.Recipe){
		"batch":         func(r *recipe.Recipe) { r.Batch = 1800 },
		"larger batch":  func(r *recipe.Recipe) { r.Batch = 1 << 40 },
		"wide fan-outs": func(r *recipe.Recipe) { r.Batch, r.Fanouts = 1800, []int{1 << 20, 1 << 20} }, // drawn anew each epoch
	} {
		r := full
		change(&r)
		_, got := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
		if traintest.Hashes(got) != traintest.Hashes(want) {
			t.Errorf("%s:\n%s\nand the full batch\n%s", name, traintest.Hashes(got), traintest.Hashes(want))
		}
	}
}

// ending is a context that ends when it is asked for the n-th time whether it has.
type ending struct {
	context.Context
	end  context.CancelCauseFunc
	left int
}

func endAfter(t *testing.T, n int) *ending {
	ctx, end := context.WithCancelCause(t.Context())
	return &ending{ctx, end, n}
}

func (e *ending) Err() error {
	if e.left--; e.left == 0 {
		e.end(traintest.ErrEnough)
	}
	return e.Context.Err()
}

// lasting is what must not differ between runs: all but times.
func lasting(e trained.Epoch) string {
	e.Seconds, e.Phases, e.Rows, e.Edges = 0, epoch.Phases{}, epoch.Rows{}, 0
	eval := "none"
	if e.Eval != nil {
		eval = fmt.Sprint(e.Scores.Train, e.Scores.Val, e.Scores.Test)
		e.Eval, e.Scores = nil, nil
	}
	return fmt.Sprintf("%+v %s", e, eval)
}

func TestWhatIsInterruptedGoesOnAsIfNothingHadHappened(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	sampled, full, sgd := traintest.Small("sage"), traintest.Small("gcn"), traintest.Small("gcn")
	sampled.Schedule.Choose(recipe.Plateau)
	sampled.Schedule.Every, sampled.Rate, sampled.Epochs = 1, 0.3, 6
	full.Batch, full.Fanouts, full.Epochs, full.EvalEvery = 0, nil, 9, 2
	sgd.Optimizer.Kind, sgd.Optimizer.Momentum, sgd.Rate = "sgd", 0.9, 0.1
	sgd.Schedule = recipe.Schedule{Kind: recipe.Cosine, Warmup: 1}
	for name, r := range map[string]recipe.Recipe{"sampled": sampled, "full": full, "sgd": sgd} {
		random := rand.New(rand.NewPCG(1, 2))
		result, all := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
		want := lasting(result.Best) + lasting(result.Last) + traintest.Hashes(all)
		if name == "sampled" && all[len(all)-1].Rate == r.Rate {
			t.Error("the rate never fell")
		}
		dir := t.TempDir()
		reports := map[int]trained.Epoch{}
		o := train.Options{Strategies: strategies.All, Threads: 2, Dir: dir, Resume: true, Dataset: "d", Report: func(e trained.Epoch) { reports[e.Epoch] = e }}
		var history []trained.Epoch
		o.Announce = func(f train.Forecast) { history = f.History }
		stops := 0
		for {
			ctx := endAfter(t, 1+random.IntN(9))
			got, err := train.Run(ctx, r, shards, o)
			if err == nil {
				result = got
				break
			}
			if !errors.Is(err, traintest.ErrEnough) {
				t.Fatal(err)
			}
			stops++
			if stops > 1000 {
				t.Fatalf("%s: it gets nowhere", name)
			}
		}
		if stops < 3 {
			t.Errorf("%s was interrupted %d times only", name, stops)
		}
		var again []trained.Epoch
		for e := 1; e <= r.Epochs; e++ {
			again = append(again, reports[e])
		}
		if got := lasting(result.Best) + lasting(result.Last) + traintest.Hashes(again); got != want {
			t.Errorf("%s, interrupted %d times:\n%s\nand undisturbed\n%s", name, stops, got, want)
		}
		for i, e := range history {
			if lasting(e) != lasting(all[i]) {
				t.Errorf("%s: the history has %s for %s", name, lasting(e), lasting(all[i]))
			}
		}
		w, err := trained.ReadWeighed(filepath.Join(dir, train.CheckpointFile), trained.BestModel)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(plain.Bytes(w.Weights))
		if best := hex.EncodeToString(sum[:]); best != result.Best.Hash || w.Epoch != result.Best.Epoch {
			t.Errorf("%s: the best weights that are kept are %s of epoch %d, and should be %s of epoch %d", name, best, w.Epoch, result.Best.Hash, result.Best.Epoch)
		}
		// What is done only says how it ended.
		got, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All, Dir: dir, Resume: true, Dataset: "d", Report: func(trained.Epoch) { t.Error("an epoch is told of again") }})
		if err != nil || lasting(got.Best) != lasting(result.Best) || lasting(got.Last) != lasting(result.Last) {
			t.Errorf("%s, resumed when it was done: %+v, %v", name, got, err)
		}
	}
}

// A run that dies leaves the checkpoint of its last interval.
func TestAnyCheckpointContinues(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	r := traintest.Small("gcn")
	dir, copies := t.TempDir(), []string{}
	o := train.Options{Strategies: strategies.All, Threads: 2, Dir: dir, Interval: time.Nanosecond, Dataset: "d"}
	undisturbed, all := traintest.MustRun(t, r, shards, o)
	o.Interval = time.Hour
	tr, err := train.NewTrainer(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 2, Dir: dir, Interval: time.Nanosecond, Dataset: "d"})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if err := tr.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Steps by themselves, so that the file can be looked at after each.
	tr.Options.Interval = time.Nanosecond
	for i := range 5 {
		err := tr.Train(endAfter(t, 3))
		if err != nil && !errors.Is(err, traintest.ErrEnough) {
			t.Fatal(err)
		}
		to := t.TempDir()
		text, err := os.ReadFile(filepath.Join(dir, train.CheckpointFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, train.CheckpointFile), text, 0o600); err != nil {
			t.Fatal(i, err)
		}
		copies = append(copies, to)
	}
	for _, to := range copies {
		o.Dir, o.Resume = to, true
		resumed := -1
		o.Announce = func(f train.Forecast) { resumed = f.Resumed }
		got, rest := traintest.MustRun(t, r, shards, o)
		if lasting(got.Last) != lasting(undisturbed.Last) || lasting(got.Best) != lasting(undisturbed.Best) {
			t.Errorf("from epoch %d: %s and undisturbed %s", resumed, lasting(got.Last), lasting(undisturbed.Last))
		}
		if resumed+len(rest) != len(all) {
			t.Errorf("%d epochs were done before and %d after, of %d", resumed, len(rest), len(all))
		}
	}
}

// The loss of each row counts the same, in whichever batch it is.
func TestGradientsOfBatchesAreMeansOfTheirRows(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	r := traintest.Small("gcn")
	r.Fanouts, r.Model.Dropout, r.Model.InputDropout, r.Optimizer.WeightDecay = nil, 0, 0, 0
	r.Batch, r.Rate = 700, 1e-30
	r.Optimizer.Kind = "sgd"
	_, batches := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	r.Batch = 0
	_, full := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	if batches[0].Steps != 3 || full[0].Steps != 1 {
		t.Fatalf("%d and %d steps", batches[0].Steps, full[0].Steps)
	}
	if a, b := batches[0].Loss, full[0].Loss; a-b > 1e-6 || b-a > 1e-6 {
		t.Errorf("the mean loss is %g in batches and %g in one", a, b)
	}
	gradients := func(size int) (all [][]float32, rows []int) {
		r.Batch = size
		tr := traintest.Started(t, r, shards, train.Options{Threads: 1})
		tr.Run.Batches.Begin(t.Context(), 1, 0)
		defer tr.Run.Batches.End()
		for range tr.Run.Batches.Steps {
			s, _, _, err := tr.Run.Batches.Next(t.Context(), tr.At.Step)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := tr.Run.Method.Step(t.Context(), tr, s, nil, 1e-30); err != nil {
				t.Fatal(err)
			}
			g := make([]float32, tr.Model.Size())
			tr.Run.Device.Read32(g, tr.Gradients)
			all, rows = append(all, g), append(rows, len(s.Roots))
			tr.Run.Batches.Release(s)
		}
		return all, rows
	}
	some, rows := gradients(700)
	whole, n := gradients(0)
	if len(some) != 3 || rows[2] >= rows[0] || rows[0]+rows[1]+rows[2] != n[0] {
		t.Fatalf("batches of %d and %d", rows, n)
	}
	for i, want := range whole[0] {
		got := 0.0
		for b := range some {
			got += float64(some[b][i]) * float64(rows[b]) / float64(n[0])
		}
		if diff := got - float64(want); diff > 1e-5 || diff < -1e-5 {
			t.Fatalf("gradient %d is %g of all batches and %g of one", i, got, want)
		}
	}
}

func TestEpochsAreInTheirOwnOrder(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	tr := traintest.Started(t, traintest.Small("gcn"), shards, train.Options{Threads: 1})
	for epoch := 1; epoch < 3; epoch++ {
		want := append([]uint32(nil), tr.Run.Data.Training...)
		sample.Order(tr.Recipe.Seed, uint64(epoch), want)
		tr.Run.Batches.Begin(t.Context(), epoch, 2)
		var got []uint32
		for step := 2; step < tr.Run.Batches.Steps; step++ {
			s, _, _, err := tr.Run.Batches.Next(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, s.Roots...)
			tr.Run.Batches.Release(s)
		}
		tr.Run.Batches.End()
		if fmt.Sprint(got) != fmt.Sprint(want[2*tr.Recipe.Batch:]) {
			t.Errorf("epoch %d trains others than it should, or in another order", epoch)
		}
	}
}
