package leap_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// However often it is interrupted, a run goes on from its last average, and comes to
// what one that was left alone comes to.
func TestLocalUpdatesGoOnFromTheLastAverage(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	random := rand.New(rand.NewPCG(3, 4))
	for _, every := range []int{2, 3, 1000} {
		r := traintest.Small("sage")
		r.Batch, r.Sharing = 60, traintest.Updating("off", every)
		_, alone := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, train.Options{Threads: 1})
		folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		reports := map[int]trained.Epoch{}
		runs, within, done := 0, 0, false
		for ; !done; runs++ {
			if runs == 100 {
				t.Fatal("it gets nowhere")
			}
			m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
			ctx := traintest.CancelAfter(t, m, 120+random.Int64N(160))
			_, epochs, err := m.Run(ctx, r, shards, train.Options{Threads: 1, Resume: true, Dataset: "d", Interval: time.Nanosecond}, func(node int) string {
				return folders[(node+runs)%3]
			})
			if err != nil && !errors.Is(err, traintest.ErrEnough) {
				t.Fatal(err)
			}
			for _, of := range epochs {
				for _, e := range of {
					reports[e.Epoch] = e
				}
			}
			done = err == nil
			for _, folder := range folders {
				c, err := trained.OpenCheckpoint(filepath.Join(folder, train.CheckpointFile))
				if err != nil {
					continue // none yet
				}
				steps := alone[0][0].Steps
				if s := c.Models[0].State.Step; s%every != 0 && s != steps {
					t.Errorf("a checkpoint stands at step %d of %d, where nothing is averaged", s, steps)
				} else if s > 0 && s < steps {
					within++
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		var all []trained.Epoch
		for n := 1; n <= r.Epochs; n++ {
			all = append(all, reports[n])
		}
		if runs < 4 || traintest.Learnt(all) != traintest.Learnt(alone[0]) || every < 1000 && within == 0 {
			t.Errorf("averaged every %d steps: after %d runs, with %d checkpoints within epochs,\n%s\nand undisturbed\n%s", every, runs, within, traintest.Learnt(all), traintest.Learnt(alone[0]))
		}
	}
}

// A node that goes back has the last average in hand, to the last bit.
func TestGoingBackToTheLastAverage(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("sage")
	r.Batch, r.Sharing = 90, traintest.Updating("off", 3)
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	all := m.Start(t, r, shards, train.Options{Threads: 1})
	steps := func(from, to int) {
		err := m.Together(t, func(ctx context.Context, node int) error {
			tr := all[node]
			for step := from; step < to; step++ {
				if _, err := traintest.StepOnce(ctx, tr, 1, step); err != nil {
					return err
				}
				tr.At.Step++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tr := range all {
		traintest.KeepIn(tr.Run, t.TempDir())
	}
	steps(0, 3)
	average, updates := all[0].Hash(), all[0].Optimizer.Steps()
	steps(3, 5)
	hashes := map[string]bool{average: true}
	for _, tr := range all {
		hashes[tr.Hash()] = true
	}
	if len(hashes) != 4 {
		t.Fatalf("%d different models are on three nodes", len(hashes)-1)
	}
	for node, tr := range all {
		if err := tr.Run.SaveBack(); err != nil {
			t.Fatal(err)
		}
		last, _ := tr.Run.Checkpoints.Last()
		if tr.Hash() != average || tr.Optimizer.Steps() != updates || tr.At.Step != 3 || last.Step != 3 {
			t.Errorf("node %d is at step %d, of %d updates", node, tr.At.Step, tr.Optimizer.Steps())
		}
	}
}

// What is not finite on one node ends the run on all of them, in the same step.
func TestLocalUpdatesThatDiverge(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("sage")
	r.Sharing = traintest.Updating("off", 1000)
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	all := m.Start(t, r, shards, train.Options{Threads: 1})
	errs := make([]error, len(all))
	row := make([]float32, all[1].Model.Size())
	for i := range row {
		row[i] = float32(math.NaN())
	}
	// Node 1, which has no roots, passes on what is no model.
	all[1].Run.Device.Write32(all[1].Weights, row)
	_ = m.Each(func(node int) error {
		_, errs[node] = traintest.StepOnce(t.Context(), all[node], 1, 0)
		return nil
	})
	for node, err := range errs {
		d, diverged := errors.AsType[*trained.Diverged](err)
		if !diverged || d.Step != 1 {
			t.Errorf("node %d: %v", node, err)
		}
	}
}

// A model that is not what it should be ends the run with a sentence.
func TestAModelThatIsNotTheOneWanted(t *testing.T) {
	want := batched.Head{Job: [32]byte{1}, Epoch: 2, Step: 3, Slot: 1, Model: 2, Rows: 3, Length: 16}
	for name, c := range map[string]struct {
		change func(h *batched.Head)
		want   string
	}{
		"it":        {func(*batched.Head) {}, ""},
		"updated":   {func(h *batched.Head) { h.Updates = 9 }, ""},
		"job":       {func(h *batched.Head) { h.Job[0]++ }, "of another job"},
		"epoch":     {func(h *batched.Head) { h.Epoch++ }, "model 2 came as it was after slot 1 of step 4 of epoch 3"},
		"step":      {func(h *batched.Head) { h.Step-- }, "of step 3 of epoch 2"},
		"slot":      {func(h *batched.Head) { h.Slot++ }, "after slot 2"},
		"model":     {func(h *batched.Head) { h.Model = 0 }, "model 0 came"},
		"rows":      {func(h *batched.Head) { h.Rows = 1 }, "with 1 rows"},
		"length":    {func(h *batched.Head) { h.Length = 1 << 60 }, "in 16"},
		"unlimited": {func(h *batched.Head) { h.Updates = math.MaxUint64 }, "updates came"},
	} {
		h := want
		c.change(&h)
		frame := make([]byte, batched.HeadSize+16)
		frame[batched.HeadSize+3] = 7
		h.Seal(frame)
		got, err := batched.OpenFrame(frame, want)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || err == nil && got != h {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		for i := range frame {
			bad := slices.Clone(frame)
			bad[i] ^= 4
			if _, err := batched.OpenFrame(bad, want); err == nil || !strings.Contains(err.Error(), "damaged") {
				t.Fatalf("%s: byte %d is another one: %v", name, i, err)
			}
		}
	}
}

func FuzzOpenFrame(f *testing.F) {
	want := batched.Head{Job: [32]byte{1}, Epoch: 2, Step: 3, Rows: 3, Length: 16}
	frame := make([]byte, batched.HeadSize+16)
	want.Seal(frame)
	f.Add(frame)
	f.Add(frame[:batched.HeadSize-1])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := batched.OpenFrame(b, want)
		if err == nil && (len(b) != batched.HeadSize+16 || h.Epoch != 2 || h.Updates > batched.MostUpdates) {
			t.Errorf("%+v is taken from %d bytes", h, len(b))
		}
	})
}

// A frame that is damaged on its way, or of another step, is refused by who takes it over.
func TestAHostileModelIsRefused(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("sage")
	r.Sharing = traintest.Updating("off", 1000)
	m := traintest.NewMesh(2, traintest.Uneven(len(shards), 2))
	all := m.Start(t, r, shards, train.Options{Threads: 1})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // what is not refused would wait for more
	defer cancel()
	_ = m.Each(func(node int) error {
		if node == 1 { // offers anything
			all[1].Run.Session.Exchange.Offer(exchange.Tag{Epoch: 1, Step: 0, Lane: exchange.LaneModel}, make([]byte, batched.HeadSize+traintest.LocalOf(all[1]).Bytes()))
			return nil
		}
		if _, err := traintest.StepOnce(ctx, all[0], 1, 0); err == nil || !strings.Contains(err.Error(), "epoch 1, step 1: take over model 1 for slot 1 from node n1: the model that came is not the one that was sent") {
			t.Error(err)
		}
		return nil
	})
}

// By itself a tour of models that differ has all slots, whatever epochs take.
func TestLocalUpdatesAreNotMergedByTime(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Short("gcn")
	r.Epochs, r.Sharing = 5, traintest.Updating("auto", 2)
	r.Sharing = r.Sharing.With("leap.mode=")
	_, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, train.Options{Threads: 1})
	for node := range reports {
		if traintest.Learnt(reports[node]) != traintest.Learnt(reports[0]) {
			t.Errorf("node %d tells\n%s\nand node 0\n%s", node, traintest.Learnt(reports[node]), traintest.Learnt(reports[0]))
		}
		for _, e := range reports[node] {
			if e.Slots != 3 {
				t.Errorf("epoch %d has %d slots", e.Epoch, e.Slots)
			}
		}
	}
	// One node has one model, which is the average.
	_, one := traintest.NewMesh(1, traintest.Uneven(len(shards), 1)).MustRun(t, r, shards, train.Options{Threads: 1})
	r.Sharing = strategy.Settings{}
	if _, single := traintest.MustRun(t, r, shards, train.Options{Threads: 1}); traintest.Learnt(one[0]) != traintest.Learnt(single) {
		t.Error("one node with local updates learns something else than one without")
	}
}

func TestStepsWithLocalUpdatesAllocateLittle(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	var asked atomic.Int64
	r := traintest.Small("sage")
	r.Sharing, r.Batch, r.Epochs = traintest.Updating("2", 2), 120, 100
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	m.Net.Trouble = func(context.Context, int, int, peer.Query) error {
		asked.Add(1)
		return nil
	}
	all := m.Start(t, r, shards, train.Options{Threads: 1})
	least, questions := uint64(math.MaxUint64), int64(0)
	for range 10 {
		var before, after runtime.MemStats
		asked.Store(0)
		runtime.ReadMemStats(&before)
		err := m.Together(t, func(ctx context.Context, node int) error {
			all[node].At.Epoch, all[node].At.Step = all[node].At.Epoch+1, 0
			return all[node].Run.Steps(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n < least {
			least, questions = n, asked.Load()
		}
	}
	if most := uint64(12*questions) + uint64(20*all[0].Run.Batches.Steps); least > most {
		t.Errorf("an epoch of %d steps with %d questions allocates %d times", all[0].Run.Batches.Steps, questions, least)
	}
}
