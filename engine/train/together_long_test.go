//go:build long

package train_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Steps of a mesh allocate for its questions alone: a few small things for each, however
// large the batch.
func TestStepsOfAMeshAllocateLittle(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	for way, sharing := range traintest.Ways() {
		r := traintest.Small("sage")
		r.Sharing, r.Batch, r.Epochs = sharing, 120, 100
		allocateLittle(t, way, r, shards)
		allocateLittle(t, way+", a sweep", traintest.Swept(r, "lr=0.01", "hidden=5", "lr=0.03"), shards)
	}
}

// However often a job is interrupted, and on however many nodes it goes on, some of
// which know nothing of it, its weights are those of a job left alone.
func TestWhatIsInterruptedGoesOnOnOtherNodes(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("sage")
	r.Epochs = 8 // several interruptions' worth
	r.Sharing.Deterministic = true
	_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	for way, sharing := range traintest.Ways() {
		random := rand.New(rand.NewPCG(3, 4))
		r.Sharing = sharing
		r.Sharing.Deterministic = true
		folders := map[int]string{}
		for node := range 5 {
			folders[node] = t.TempDir()
		}
		reports := map[int]trained.Epoch{}
		runs, done := 0, false
		for ; !done; runs++ {
			if runs == 100 {
				t.Fatal("it gets nowhere")
			}
			nodes := []int{2, 3, 5}[runs%3]
			m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes))
			ctx := traintest.CancelAfter(t, m, int64(nodes*(nodes-1))*(8+random.Int64N(20)))
			start := time.Now()
			_, epochs, err := m.Run(ctx, r, shards, train.Options{Threads: 1, Resume: true, Dataset: "d", Interval: time.Nanosecond}, func(node int) string {
				return folders[(node+runs)%5] // which node it is changes, too
			})
			if took := time.Since(start); took > time.Minute {
				t.Errorf("%s: a run of %d nodes took %v", way, nodes, took)
			}
			if err != nil && !errors.Is(err, traintest.ErrEnough) {
				t.Fatalf("%s: %v", way, err)
			}
			for _, of := range epochs {
				for _, e := range of {
					if before, twice := reports[e.Epoch]; twice && before.Hash != e.Hash {
						t.Errorf("%s: epoch %d is told with other weights", way, e.Epoch)
					}
					reports[e.Epoch] = e
				}
			}
			done = err == nil
		}
		var all []trained.Epoch
		for n := 1; n <= r.Epochs; n++ {
			all = append(all, reports[n])
		}
		if runs < 3 || traintest.Learnt(all) != traintest.Learnt(one) {
			t.Errorf("%s: after %d runs\n%s\nand undisturbed\n%s", way, runs, traintest.Learnt(all), traintest.Learnt(one))
		}
	}
}

func TestThreadsAndPrefetchChangeNoBit(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	for _, model := range []string{"gcn", "sage", "gat"} {
		for _, full := range []bool{false, true} {
			r := traintest.Small(model)
			if full {
				r.Batch, r.Fanouts = 0, nil
			}
			want := ""
			for _, how := range []struct{ threads, prefetch int }{{1, 0}, {2, 0}, {4, 0}, {2, 1}, {3, 5}} {
				tr, err := train.NewTrainer(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: how.threads})
				if err != nil {
					t.Fatal(err)
				}
				tr.Prefetch = how.prefetch
				if err := errors.Join(tr.Prepare(t.Context()), tr.Train(t.Context())); err != nil {
					t.Fatal(err)
				}
				l := tr.Learners[0]
				got := traintest.Hashes(l.History) + fmt.Sprint(l.At.Last.Scores.Val)
				tr.Close()
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
