//go:build long

package leap_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// Nor any bit where gradients are added up by grains.
func TestBalanceChangesNoBit(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("sage")
	r.Epochs = 2
	r.Sharing.Deterministic = true
	_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	for _, nodes := range []int{1, 2, 3, 5} {
		for copies := 1; copies <= 3; copies++ {
			for way, sharing := range traintest.Ways() {
				for _, off := range []bool{false, true} {
					if way == "centric" {
						continue
					}
					r.Sharing = sharing
					r.Sharing = r.Sharing.With(balanced(!off))
					r.Sharing.Deterministic = true
					_, reports := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).Copied(copies).MustRun(t, r, shards, train.Options{Threads: 1})
					for node, got := range reports {
						if traintest.Learnt(got) != traintest.Learnt(one) {
							t.Errorf("node %d of %d by %s with %d copies, balance off %v:\n%s\nand one node\n%s", node, nodes, way, copies, off, traintest.Learnt(got), traintest.Learnt(one))
						}
					}
				}
			}
		}
	}
}
