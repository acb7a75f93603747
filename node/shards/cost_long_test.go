//go:build long

package shards

import (
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"golang.org/x/sys/unix"
)

// worked returns the processor time that a function takes.
func worked(t *testing.T, do func()) time.Duration {
	t.Helper()
	used := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	do()
	return used() - before
}

// alone returns the processor time that a function takes on its thread. That of the whole process
// would count the collector, too, which still tidies up after the training before.
func alone(t *testing.T, do func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var u unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Nano())
	}
	before := used()
	do()
	return used() - before
}

// To verify shards takes at most 3 % of the processor time of the first epoch. Their SHA-256 is taken
// where they are made, and when they are fetched.
func TestVerifyingShardsCostsLittle(t *testing.T) {
	dir := t.TempDir()
	src, err := generate.New(generate.Options{Kind: "sbm", Vertices: 100_000, Edges: 1_000_000, Features: 128, Classes: 8, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	m, err := build.Run(t.Context(), src, build.Options{Shards: 16, Partitioner: "random", DType: graph.F32, Dir: filepath.Join(dir, "g"), Scratch: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	var shards []*graph.Shard
	bytes := uint64(0)
	for i, s := range m.Shards {
		shard, err := graph.OpenShard(filepath.Join(dir, "g", graph.ShardFile(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer shard.Close()
		shards, bytes = append(shards, shard), bytes+s.Bytes
	}
	file := func(i int) string { return filepath.Join(dir, "g", graph.ShardFile(i)) }
	for i, s := range m.Shards {
		if _, ok := recognise(t.Context(), file(i), s.SHA256); !ok {
			t.Errorf("shard %d is not recognised right after it was made", i)
		}
	}
	first := alone(t, func() {
		for i, s := range m.Shards {
			sum, quick, as, err := hashFile(t.Context(), file(i), nil)
			if err != nil || sum != s.SHA256 {
				t.Fatal(sum, err)
			}
			if now := mark(file(i), sum, quick, as); now.inode != as.inode {
				t.Error("it is another file")
			}
		}
	})
	sums := func() time.Duration {
		return alone(t, func() {
			for i, s := range m.Shards {
				if _, ok := recogniseMapped(t.Context(), file(i), s.SHA256, shards[i]); !ok {
					t.Fatal("a shard is not recognised")
				}
			}
		})
	}
	t.Logf("%d MB take %v of processor time by SHA-256, where shards are made and when they are fetched", bytes>>20, first)
	for _, model := range []string{"gcn", "sage"} {
		r := traintest.Small(model)
		r.Epochs, r.EvalEvery, r.Model.Layers, r.Model.Hidden, r.Batch, r.Fanouts = 1, 1, 2, 64, 0, nil
		if model == "sage" {
			r.Batch, r.Fanouts = 1024, []int{10, 10}
		}
		var all, epochs, laters []float64
		for range 5 { // by turns, since other work of the machine slows both
			later := sums()
			epoch := worked(t, func() { traintest.MustRun(t, r, shards, train.Options{Threads: 2, Dataset: "d"}) })
			all = append(all, 100*float64(later)/float64(epoch))
			epochs, laters = append(epochs, epoch.Seconds()), append(laters, later.Seconds())
		}
		share := middle(all)
		t.Logf("%s: the first epoch takes %.0f ms, and verifying by sums, beside the first epoch after a start, %.1f ms: %.1f %% (%.1f to %.1f %%)",
			model, 1000*middle(epochs), 1000*middle(laters), share, slices.Min(all), slices.Max(all))
		if share > 3 {
			t.Errorf("%s: verifying takes %.1f %% of the first epoch", model, share)
		}
	}
}

// middle returns the median, and sorts.
func middle(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
