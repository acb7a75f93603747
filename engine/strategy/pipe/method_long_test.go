//go:build long

package pipe_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// However often they are interrupted, and on however many nodes they go on, they come to
// what they would have come to.
func TestPipelinesGoOn(t *testing.T) {
	shards := traintest.Communities(t, 400)
	random := rand.New(rand.NewPCG(5, 4))
	for _, sharing := range []strategy.Settings{
		strategy.Given(pipe.Name, "pipe.period=3"),
		strategy.Given(pipe.Name, "pipe.ways=2", "pipe.period=4"),
		strategy.Given(pipe.GraphName, "pipe.ways=2"),
		strategy.Given(pipe.GraphName, "pipe.ways=3", "pipe.halo=skip", "pipe.age=2"),
		strategy.Given(pipe.GraphName, "pipe.ways=3", "pipe.halo=previous-epoch"),
		strategy.Given(pipe.Name, "pipe.period=2", "pipe.histories=zeros"),
		strategy.Given(pipe.Name, "pipe.ways=2", "pipe.histories=left", "pipe.gradients=kept"),
	} {
		r := traintest.FullGraph("gcnii", 3)
		r.Sharing = sharing
		r.Sharing.Deterministic = true
		_, alone := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).MustRun(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
		folders := map[int]string{}
		for node := range 4 {
			folders[node] = t.TempDir()
		}
		reports := map[int]trained.Epoch{}
		runs, done := 0, false
		for ; !done; runs++ {
			if runs == 100 {
				t.Fatal("it gets nowhere")
			}
			nodes := []int{2, 3, 4}[runs%3]
			m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes))
			ctx := t.Context()
			if runs < 6 {
				ctx = traintest.CancelInEpochs(t, m, int64(nodes*nodes)*(8+random.Int64N(30)))
			}
			known := 0
			for epoch := range reports {
				known = max(known, epoch)
			}
			_, epochs, err := m.Run(ctx, r, shards, train.Options{Threads: 1, Resume: true, Dataset: "d", Interval: time.Nanosecond, Strategies: traintest.Pipelines}, func(node int) string {
				return folders[node]
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
		}
		var all []trained.Epoch
		for n := 1; n <= r.Epochs; n++ {
			all = append(all, reports[n])
		}
		if runs < 2 || traintest.Learnt(all) != traintest.Learnt(alone[0]) {
			t.Errorf("%v: after %d runs\n%s\nand undisturbed\n%s", sharing.Values, runs, traintest.Learnt(all), traintest.Learnt(alone[0]))
		}
	}
}

// What forward makes is kept for backward where memory has room, and made again where it
// has not, which is no reason to refuse a job, and changes no bit.
func TestPipelinesKeepWhatFits(t *testing.T) {
	shards := traintest.Communities(t, 4000)
	r := traintest.FullGraph("gcnii", 8)
	r.Epochs, r.Model.Hidden = 2, 32
	taken := func(recompute string, memory uint64) (bytes uint64, recomputes bool) {
		r.Sharing = strategy.Given(pipe.Name, "pipe.recompute="+recompute)
		l := traintest.Started(t, r, shards, train.Options{Threads: 1, Memory: memory})
		return traintest.PipedOf(l).Bytes(), traintest.PipedOf(l).Worker.Recompute
	}
	keeps, _ := taken("off", 0)
	again, recomputes := taken("on", 0)
	if !recomputes || again >= keeps {
		t.Fatalf("%d bytes where all is kept, and %d where it is made again", keeps, again)
	}
	if bytes, recomputes := taken("auto", 0); recomputes || bytes != keeps {
		t.Errorf("with all memory: %d bytes, made again: %v", bytes, recomputes)
	}
	// least is what a run needs at least, to a page.
	least := func(recompute string) (enough uint64) {
		r.Sharing = strategy.Given(pipe.Name, "pipe.recompute="+recompute)
		few, enough := uint64(0), uint64(1<<30)
		for enough-few > 4096 {
			memory := (few + enough) / 2
			if _, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 1, Memory: memory}); err != nil {
				few = memory
			} else {
				enough = memory
			}
		}
		return enough
	}
	r.Epochs = 1
	if auto, again := least("auto"), least("on"); auto != again {
		t.Errorf("a run needs %d bytes, and %d where all is made again", auto, again)
	}
	tight := least("off") - 8192
	r.Epochs = 2
	if bytes, recomputes := taken("auto", tight); !recomputes || bytes > again {
		t.Errorf("with %d bytes: %d, made again: %v", tight, bytes, recomputes)
	}
	var want string
	for _, memory := range []uint64{0, tight} {
		r.Sharing = strategy.Given(pipe.Name)
		_, reports := traintest.MustRun(t, r, shards, train.Options{Threads: 1, Memory: memory})
		if want == "" {
			want = traintest.Learnt(reports)
		}
		if got := traintest.Learnt(reports); got != want {
			t.Errorf("with %d bytes:\n%s\nand with all\n%s", memory, got, want)
		}
	}
}
