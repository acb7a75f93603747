package train

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

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// However often it is interrupted, a run goes on from its last average, and comes to
// what one that was left alone comes to.
func TestLocalUpdatesGoOnFromTheLastAverage(t *testing.T) {
	shards := communities(t, 1500)
	random := rand.New(rand.NewPCG(3, 4))
	for _, every := range []int{2, 3, 1000} {
		r := small("sage")
		r.Batch, r.Sharing = 60, updating("off", every)
		_, alone := newMesh(3, uneven(len(shards), 3)).mustRun(t, r, shards, Options{Threads: 1})
		folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		told := map[int]Epoch{}
		runs, within, done := 0, 0, false
		for ; !done; runs++ {
			if runs == 100 {
				t.Fatal("it gets nowhere")
			}
			m := newMesh(3, uneven(len(shards), 3))
			ctx := cancelAfter(t, m, 150+random.Int64N(250))
			_, epochs, err := m.run(ctx, r, shards, Options{Threads: 1, Resume: true, Dataset: "d", Interval: time.Nanosecond}, func(node int) string {
				return folders[(node+runs)%3]
			})
			if err != nil && !errors.Is(err, errEnough) {
				t.Fatal(err)
			}
			for _, of := range epochs {
				for _, e := range of {
					told[e.Epoch] = e
				}
			}
			done = err == nil
			for _, folder := range folders {
				c, err := openCheckpoint(filepath.Join(folder, CheckpointFile))
				if err != nil {
					continue // none yet
				}
				steps := alone[0][0].Steps
				if s := c.models[0].State.Step; s%every != 0 && s != steps {
					t.Errorf("a checkpoint stands at step %d of %d, where nothing is averaged", s, steps)
				} else if s > 0 && s < steps {
					within++
				}
				if err := c.close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		var all []Epoch
		for n := 1; n <= r.Epochs; n++ {
			all = append(all, told[n])
		}
		if runs < 4 || learnt(all) != learnt(alone[0]) || every < 1000 && within == 0 {
			t.Errorf("averaged every %d steps: after %d runs, with %d checkpoints within epochs,\n%s\nand undisturbed\n%s", every, runs, within, learnt(all), learnt(alone[0]))
		}
	}
}

// A node that goes back has the last average in hand, to the last bit.
func TestGoingBackToTheLastAverage(t *testing.T) {
	shards := communities(t, 1500)
	r := small("sage")
	r.Batch, r.Sharing = 90, updating("off", 3)
	m := newMesh(3, uneven(len(shards), 3))
	all := m.start(t, r, shards, Options{Threads: 1})
	steps := func(from, to int) {
		err := m.together(t, func(ctx context.Context, node int) error {
			tr := all[node]
			for step := from; step < to; step++ {
				if _, err := tr.one(ctx, 1, step); err != nil {
					return err
				}
				tr.at.Step++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tr := range all {
		tr.options.Dir = t.TempDir()
	}
	steps(0, 3)
	average, updates := all[0].hash(), all[0].optimizer.Steps()
	steps(3, 5)
	hashes := map[string]bool{average: true}
	for _, tr := range all {
		hashes[tr.hash()] = true
	}
	if len(hashes) != 4 {
		t.Fatalf("%d different models are on three nodes", len(hashes)-1)
	}
	for node, tr := range all {
		if err := tr.save(); err != nil {
			t.Fatal(err)
		}
		if tr.hash() != average || tr.optimizer.Steps() != updates || tr.at.Step != 3 || tr.saved.step != 3 {
			t.Errorf("node %d is at step %d, of %d updates", node, tr.at.Step, tr.optimizer.Steps())
		}
	}
}

// What is not finite on one node ends the run on all of them, in the same step.
func TestLocalUpdatesThatDiverge(t *testing.T) {
	shards := communities(t, 1500)
	r := small("sage")
	r.Sharing = updating("off", 1000)
	m := newMesh(3, uneven(len(shards), 3))
	all := m.start(t, r, shards, Options{Threads: 1})
	errs := make([]error, len(all))
	row := make([]float32, all[1].model.Size())
	for i := range row {
		row[i] = float32(math.NaN())
	}
	// Node 1, which has no roots, passes on what is no model.
	all[1].device.Write32(all[1].weights, row)
	_ = m.each(func(node int) error {
		_, errs[node] = all[node].one(t.Context(), 1, 0)
		return nil
	})
	for node, err := range errs {
		d, diverged := errors.AsType[*Diverged](err)
		if !diverged || d.Step != 1 {
			t.Errorf("node %d: %v", node, err)
		}
	}
}

// A model that is not what it should be ends the run with a sentence.
func TestAModelThatIsNotTheOneWanted(t *testing.T) {
	want := head{job: [32]byte{1}, epoch: 2, step: 3, slot: 1, model: 2, rows: 3, length: 16}
	for name, c := range map[string]struct {
		change func(h *head)
		want   string
	}{
		"it":        {func(*head) {}, ""},
		"updated":   {func(h *head) { h.updates = 9 }, ""},
		"job":       {func(h *head) { h.job[0]++ }, "of another job"},
		"epoch":     {func(h *head) { h.epoch++ }, "model 2 came as it was after slot 1 of step 4 of epoch 3"},
		"step":      {func(h *head) { h.step-- }, "of step 3 of epoch 2"},
		"slot":      {func(h *head) { h.slot++ }, "after slot 2"},
		"model":     {func(h *head) { h.model = 0 }, "model 0 came"},
		"rows":      {func(h *head) { h.rows = 1 }, "with 1 rows"},
		"length":    {func(h *head) { h.length = 1 << 60 }, "in 16"},
		"unlimited": {func(h *head) { h.updates = math.MaxUint64 }, "updates came"},
	} {
		h := want
		c.change(&h)
		frame := make([]byte, headSize+16)
		frame[headSize+3] = 7
		h.seal(frame)
		got, err := openFrame(frame, want)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || err == nil && got != h {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		for i := range frame {
			bad := slices.Clone(frame)
			bad[i] ^= 4
			if _, err := openFrame(bad, want); err == nil || !strings.Contains(err.Error(), "damaged") {
				t.Fatalf("%s: byte %d is another one: %v", name, i, err)
			}
		}
	}
}

func FuzzOpenFrame(f *testing.F) {
	want := head{job: [32]byte{1}, epoch: 2, step: 3, rows: 3, length: 16}
	frame := make([]byte, headSize+16)
	want.seal(frame)
	f.Add(frame)
	f.Add(frame[:headSize-1])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := openFrame(b, want)
		if err == nil && (len(b) != headSize+16 || h.epoch != 2 || h.updates > mostUpdates) {
			t.Errorf("%+v is taken from %d bytes", h, len(b))
		}
	})
}

// A frame that is damaged on its way, or of another step, is refused by who takes it over.
func TestAHostileModelIsRefused(t *testing.T) {
	shards := communities(t, 1500)
	r := small("sage")
	r.Sharing = updating("off", 1000)
	m := newMesh(2, uneven(len(shards), 2))
	all := m.start(t, r, shards, Options{Threads: 1})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // what is not refused would wait for more
	defer cancel()
	_ = m.each(func(node int) error {
		if node == 1 { // offers anything
			all[1].shared.exchange.Offer(exchange.Tag{Epoch: 1, Step: 0, Lane: exchange.LaneModel}, make([]byte, headSize+all[1].local.bytes()))
			return nil
		}
		if _, err := all[0].one(ctx, 1, 0); err == nil || !strings.Contains(err.Error(), "epoch 1, step 1: take over model 1 for slot 1 from node n1: the model that came is not the one that was sent") {
			t.Error(err)
		}
		return nil
	})
}

// By itself a tour of models that differ has all slots, whatever epochs take.
func TestLocalUpdatesAreNotMergedByTime(t *testing.T) {
	shards := communities(t, 1500)
	r := short("gcn")
	r.Epochs, r.Sharing = 5, updating("auto", 2)
	r.Sharing.Leap.Mode = ""
	_, told := newMesh(3, uneven(len(shards), 3)).mustRun(t, r, shards, Options{Threads: 1})
	for node := range told {
		if learnt(told[node]) != learnt(told[0]) {
			t.Errorf("node %d tells\n%s\nand node 0\n%s", node, learnt(told[node]), learnt(told[0]))
		}
		for _, e := range told[node] {
			if e.Slots != 3 {
				t.Errorf("epoch %d has %d slots", e.Epoch, e.Slots)
			}
		}
	}
	// One node has one model, which is the average.
	_, one := newMesh(1, uneven(len(shards), 1)).mustRun(t, r, shards, Options{Threads: 1})
	r.Sharing = strategy.Settings{}
	if _, single := mustRun(t, r, shards, Options{Threads: 1}); learnt(one[0]) != learnt(single) {
		t.Error("one node with local updates learns something else than one without")
	}
}

func TestStepsWithLocalUpdatesAllocateLittle(t *testing.T) {
	shards := communities(t, 3000)
	var asked atomic.Int64
	r := small("sage")
	r.Sharing, r.Batch, r.Epochs = updating("2", 2), 120, 100
	m := newMesh(3, uneven(len(shards), 3))
	m.net.Trouble = func(context.Context, int, int, strategy.Query) error {
		asked.Add(1)
		return nil
	}
	all := m.start(t, r, shards, Options{Threads: 1})
	least, questions := uint64(math.MaxUint64), int64(0)
	for range 10 {
		var before, after runtime.MemStats
		asked.Store(0)
		runtime.ReadMemStats(&before)
		err := m.together(t, func(ctx context.Context, node int) error {
			all[node].at.Epoch, all[node].at.Step = all[node].at.Epoch+1, 0
			return all[node].steps(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n < least {
			least, questions = n, asked.Load()
		}
	}
	if most := uint64(12*questions) + uint64(20*all[0].batches.steps); least > most {
		t.Errorf("an epoch of %d steps with %d questions allocates %d times", all[0].batches.steps, questions, least)
	}
}
