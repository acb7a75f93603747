//go:build long

package train_test

import (
	"context"
	"errors"
	"testing"

	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// What a device that failed has made is told to no other node: all end, and what is left
// of each is of before.
func TestADeviceThatFailsAmongOthers(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for way, sharing := range map[string]strategy.Settings{"leap": traintest.Ways()["leap"], "migrate": traintest.Ways()["migrate"], "updating": traintest.Updating("2", 3)} {
		r := traintest.Small("sage")
		r.Epochs, r.Sharing = 2, sharing
		whole := traintest.NewMesh(2, traintest.Uneven(len(shards), 2))
		_, reports := whole.MustRun(t, r, shards, train.Options{Threads: 1})
		want := reports[0][1].Hash
		for at := 120; at < 155; at++ { // more than a step has
			folders := []string{t.TempDir(), t.TempDir()}
			m := traintest.NewMesh(2, traintest.Uneven(len(shards), 2))
			err := m.Together(t, func(ctx context.Context, node int) error {
				held, o := m.Of(node, shards, train.Options{Threads: 1, Dir: folders[node], Dataset: "d", Resume: true, Interval: 1})
				if node == 1 {
					o = traintest.Abroad(o, func(d *foreign.Device) { d.FailAt(at, errBus) })
				}
				_, err := train.Run(ctx, r, held, o)
				return err
			})
			if _, is := errors.AsType[*slot.Broken](err); !is {
				t.Fatalf("%s, operation %d: %v", way, at, err)
			}
			m = traintest.NewMesh(2, traintest.Uneven(len(shards), 2))
			_, reports, err := m.Run(t.Context(), r, shards, train.Options{Threads: 1, Dataset: "d", Resume: true}, func(node int) string { return folders[node] })
			if err != nil || reports[0][len(reports[0])-1].Hash != want {
				t.Errorf("%s: after operation %d failed: %v, %s", way, at, err, traintest.Learnt(reports[0]))
			}
		}
	}
}
