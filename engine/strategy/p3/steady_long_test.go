//go:build long

package p3_test

import (
	"runtime"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// Steps under way take no more of Go's heap than steps do that wait for each other.
func TestStepsUnderWayAllocateNothingMore(t *testing.T) {
	for name, shards := range map[string][]*graph.Shard{"dense": traintest.Communities(t, 3000), "sparse": traintest.CoraShards(t)} {
		var takes [2]uint64
		steps := 0
		for i, k := range []int{1, 3} {
			r := traintest.Small("sage")
			r.Batch, r.EvalEvery, r.Sharing = 10, 1000, traintest.Inflight(k, true)
			tr := traintest.Started(t, r, shards, train.Options{Threads: 2})
			steps = tr.Run.Batches.Steps
			epoch := func(n int) (allocated uint64) {
				tr.At.Epoch, tr.At.Step = n, 0
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if err := tr.Run.Steps(t.Context()); err != nil {
					t.Fatal(err)
				}
				runtime.ReadMemStats(&after)
				return after.Mallocs - before.Mallocs
			}
			for n := range 8 {
				epoch(1 + n%2)
			}
			takes[i] = epoch(1)
			for range 6 {
				takes[i] = min(takes[i], epoch(1))
			}
		}
		if takes[1] > takes[0]+uint64(steps)/2 {
			t.Errorf("%s: an epoch of %d steps allocates %d times with three under way, and %d times with one", name, steps, takes[1], takes[0])
		}
	}
}
