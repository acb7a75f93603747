package train

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

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// small is a recipe in which all there is to a run happens in a few epochs of
// several steps, the last of which is smaller.
func small(model string) Recipe {
	r := DefaultRecipe(model)
	r.Model.Hidden = 12
	r.Epochs, r.Batch, r.Seed = 4, 190, 7
	r.Fanouts = []int{5, 3}
	return r
}

func TestThreadsAndPrefetchChangeNoBit(t *testing.T) {
	shards := communities(t, 3000)
	for _, model := range []string{"gcn", "sage", "gat"} {
		for _, full := range []bool{false, true} {
			r := small(model)
			if full {
				r.Batch, r.Fanouts = 0, nil
			}
			want := ""
			for _, how := range []struct{ threads, prefetch int }{{1, 0}, {2, 0}, {4, 0}, {2, 1}, {3, 5}} {
				tr, err := newTrainer(t.Context(), r, shards, Options{Threads: how.threads})
				if err != nil {
					t.Fatal(err)
				}
				tr.prefetch = how.prefetch
				if err := errors.Join(tr.prepare(t.Context()), tr.train(t.Context())); err != nil {
					t.Fatal(err)
				}
				l := tr.learners[0]
				got := hashes(l.history) + fmt.Sprint(l.at.Last.Eval.Val)
				tr.close()
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("%s, full %v: %d threads with %d slots give\n%s\nand one\n%s", model, full, how.threads, how.prefetch, got, want)
				}
			}
		}
	}
}

// A batch of all training vertices is the full batch, however its neighbours are
// asked for.
func TestABatchOfAllIsTheFullBatch(t *testing.T) {
	shards := communities(t, 3000)
	full := small("gcn")
	full.Batch, full.Fanouts = 0, nil
	_, want := mustRun(t, full, shards, Options{Threads: 2})
	for name, change := range map[string]func(r *Recipe){
		"batch":         func(r *Recipe) { r.Batch = 1800 },
		"larger batch":  func(r *Recipe) { r.Batch = 1 << 40 },
		"wide fan-outs": func(r *Recipe) { r.Batch, r.Fanouts = 1800, []int{1 << 20, 1 << 20} }, // drawn anew each epoch
	} {
		r := full
		change(&r)
		_, got := mustRun(t, r, shards, Options{Threads: 2})
		if hashes(got) != hashes(want) {
			t.Errorf("%s:\n%s\nand the full batch\n%s", name, hashes(got), hashes(want))
		}
	}
}

// ending is a context that ends when it is asked for the n-th time whether it has.
type ending struct {
	context.Context
	end  context.CancelCauseFunc
	left int
}

var errEnough = errors.New("enough")

func endAfter(t *testing.T, n int) *ending {
	ctx, end := context.WithCancelCause(t.Context())
	return &ending{ctx, end, n}
}

func (e *ending) Err() error {
	if e.left--; e.left == 0 {
		e.end(errEnough)
	}
	return e.Context.Err()
}

// plain is what must not differ between runs: all but times.
func plain(e Epoch) string {
	e.Seconds, e.Phases, e.Rows, e.Edges = 0, Phases{}, 0, 0
	eval := "none"
	if e.Eval != nil {
		eval = fmt.Sprint(e.Eval.Train, e.Eval.Val, e.Eval.Test)
		e.Eval = nil
	}
	return fmt.Sprintf("%+v %s", e, eval)
}

func TestWhatIsInterruptedGoesOnAsIfNothingHadHappened(t *testing.T) {
	shards := communities(t, 3000)
	random := rand.New(rand.NewPCG(1, 2))
	sampled, full, sgd := small("sage"), small("gcn"), small("gcn")
	sampled.Schedule.choose(Plateau)
	sampled.Schedule.Every, sampled.Rate, sampled.Epochs = 1, 0.3, 6
	full.Batch, full.Fanouts, full.Epochs, full.EvalEvery = 0, nil, 9, 2
	sgd.Optimizer.Kind, sgd.Optimizer.Momentum, sgd.Rate = "sgd", 0.9, 0.1
	sgd.Schedule = Schedule{Kind: Cosine, Warmup: 1}
	for name, r := range map[string]Recipe{"sampled": sampled, "full": full, "sgd": sgd} {
		result, all := mustRun(t, r, shards, Options{Threads: 2})
		want := plain(result.Best) + plain(result.Last) + hashes(all)
		if name == "sampled" && all[len(all)-1].Rate == r.Rate {
			t.Error("the rate never fell")
		}
		dir := t.TempDir()
		told := map[int]Epoch{}
		o := Options{Threads: 2, Dir: dir, Resume: true, Dataset: "d", Report: func(e Epoch) { told[e.Epoch] = e }}
		var history []Epoch
		o.Announce = func(f Forecast) { history = f.History }
		stops := 0
		for {
			ctx := endAfter(t, 1+random.IntN(9))
			got, err := Run(ctx, r, shards, o)
			if err == nil {
				result = got
				break
			}
			if !errors.Is(err, errEnough) {
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
		var again []Epoch
		for e := 1; e <= r.Epochs; e++ {
			again = append(again, told[e])
		}
		if got := plain(result.Best) + plain(result.Last) + hashes(again); got != want {
			t.Errorf("%s, interrupted %d times:\n%s\nand undisturbed\n%s", name, stops, got, want)
		}
		for i, e := range history {
			if plain(e) != plain(all[i]) {
				t.Errorf("%s: the history has %s for %s", name, plain(e), plain(all[i]))
			}
		}
		w, err := readWeighed(filepath.Join(dir, CheckpointFile), BestModel)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(bytesOf(w.weights))
		if best := hex.EncodeToString(sum[:]); best != result.Best.Hash || w.epoch != result.Best.Epoch {
			t.Errorf("%s: the best weights that are kept are %s of epoch %d, and should be %s of epoch %d", name, best, w.epoch, result.Best.Hash, result.Best.Epoch)
		}
		// What is done only says how it ended.
		got, err := Run(t.Context(), r, shards, Options{Dir: dir, Resume: true, Dataset: "d", Report: func(Epoch) { t.Error("an epoch is told of again") }})
		if err != nil || plain(got.Best) != plain(result.Best) || plain(got.Last) != plain(result.Last) {
			t.Errorf("%s, resumed when it was done: %+v, %v", name, got, err)
		}
	}
}

// A run that dies leaves the checkpoint of its last interval.
func TestAnyCheckpointContinues(t *testing.T) {
	shards := communities(t, 3000)
	r := small("gcn")
	dir, copies := t.TempDir(), []string{}
	o := Options{Threads: 2, Dir: dir, Interval: time.Nanosecond, Dataset: "d"}
	undisturbed, all := mustRun(t, r, shards, o)
	o.Interval = time.Hour
	tr, err := newTrainer(t.Context(), r, shards, Options{Threads: 2, Dir: dir, Interval: time.Nanosecond, Dataset: "d"})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	if err := tr.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Steps by themselves, so that the file can be looked at after each.
	tr.options.Interval = time.Nanosecond
	for i := range 5 {
		err := tr.train(endAfter(t, 3))
		if err != nil && !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		to := t.TempDir()
		text, err := os.ReadFile(filepath.Join(dir, CheckpointFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, CheckpointFile), text, 0o600); err != nil {
			t.Fatal(i, err)
		}
		copies = append(copies, to)
	}
	for _, to := range copies {
		o.Dir, o.Resume = to, true
		resumed := -1
		o.Announce = func(f Forecast) { resumed = f.Resumed }
		got, rest := mustRun(t, r, shards, o)
		if plain(got.Last) != plain(undisturbed.Last) || plain(got.Best) != plain(undisturbed.Best) {
			t.Errorf("from epoch %d: %s and undisturbed %s", resumed, plain(got.Last), plain(undisturbed.Last))
		}
		if resumed+len(rest) != len(all) {
			t.Errorf("%d epochs were done before and %d after, of %d", resumed, len(rest), len(all))
		}
	}
}

// The loss of each row counts the same, in whichever batch it is.
func TestGradientsOfBatchesAreMeansOfTheirRows(t *testing.T) {
	shards := communities(t, 3000)
	r := small("gcn")
	r.Fanouts, r.Model.Dropout, r.Model.InputDropout, r.Optimizer.WeightDecay = nil, 0, 0, 0
	r.Batch, r.Rate = 700, 1e-30
	r.Optimizer.Kind = "sgd"
	_, batches := mustRun(t, r, shards, Options{Threads: 1})
	r.Batch = 0
	_, full := mustRun(t, r, shards, Options{Threads: 1})
	if batches[0].Steps != 3 || full[0].Steps != 1 {
		t.Fatalf("%d and %d steps", batches[0].Steps, full[0].Steps)
	}
	if a, b := batches[0].Loss, full[0].Loss; a-b > 1e-6 || b-a > 1e-6 {
		t.Errorf("the mean loss is %g in batches and %g in one", a, b)
	}
	gradients := func(size int) (all [][]float32, rows []int) {
		r.Batch = size
		tr := started(t, r, shards, Options{Threads: 1})
		tr.batches.begin(t.Context(), 1, 0)
		defer tr.batches.end()
		for range tr.batches.steps {
			s, _, err := tr.batches.next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := tr.step(t.Context(), s, 1e-30); err != nil {
				t.Fatal(err)
			}
			g := make([]float32, tr.model.Size())
			tr.device.Read32(g, tr.gradients)
			all, rows = append(all, g), append(rows, len(s.roots))
			tr.batches.release(s)
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

// started is the model of a run that is about to train.
func started(t testing.TB, r Recipe, shards []*graph.Shard, o Options) *learner {
	t.Helper()
	tr, err := newTrainer(t.Context(), r, shards, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.close)
	if err := tr.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tr.learners[0]
}

func TestEpochsAreInTheirOwnOrder(t *testing.T) {
	shards := communities(t, 3000)
	tr := started(t, small("gcn"), shards, Options{Threads: 1})
	for epoch := 1; epoch < 3; epoch++ {
		want := append([]uint32(nil), tr.data.training...)
		sample.Order(tr.recipe.Seed, uint64(epoch), want)
		tr.batches.begin(t.Context(), epoch, 2)
		var got []uint32
		for step := 2; step < tr.batches.steps; step++ {
			s, _, err := tr.batches.next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, s.roots...)
			tr.batches.release(s)
		}
		tr.batches.end()
		if fmt.Sprint(got) != fmt.Sprint(want[2*tr.recipe.Batch:]) {
			t.Errorf("epoch %d trains others than it should, or in another order", epoch)
		}
	}
}
