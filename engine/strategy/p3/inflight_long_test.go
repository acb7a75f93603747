//go:build long

package p3_test

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// However often a run is interrupted, and on however many nodes it goes on, what was
// under way is sent again with the weights that it had been sent with: it comes to the
// bits of one that was left alone.
func TestWhatWasUnderWayIsSentAgainAsItWas(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	random := rand.New(rand.NewPCG(5, 6))
	for _, k := range []int{2, 4} {
		r := traintest.Small("sage")
		r.Batch, r.Sharing = 60, traintest.Inflight(k, true)
		_, alone := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, traintest.Columnwise(train.Options{Threads: 1}))
		folders := map[int]string{}
		for node := range 5 {
			folders[node] = t.TempDir()
		}
		reports := map[int]trained.Epoch{}
		runs, within, done := 0, 0, false
		for ; !done; runs++ {
			if runs == 200 {
				t.Fatal("it gets nowhere")
			}
			nodes := []int{3, 2, 5}[runs%3]
			m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes))
			ctx := traintest.CancelAfter(t, m, int64(nodes*nodes)*(20+random.Int64N(60)))
			_, epochs, err := m.Run(ctx, r, shards, traintest.Columnwise(train.Options{Threads: 1, Resume: true, Dataset: "d"}), func(node int) string {
				return folders[(node+runs)%5]
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
				if s := c.Models[0].State.Step; s >= k && s < alone[0][0].Steps {
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
		if runs < 4 || within == 0 || traintest.Learnt(all) != traintest.Learnt(alone[0]) {
			t.Errorf("%d under way: after %d runs, with %d checkpoints within epochs,\n%s\nand undisturbed\n%s", k, runs, within, traintest.Learnt(all), traintest.Learnt(alone[0]))
		}
	}
}
