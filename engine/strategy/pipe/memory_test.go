package pipe

import (
	"slices"
	"testing"
)

// What lives as long as training does not grow with how many shards there are, and edges
// between them: no shard keeps rows of others from forward to backward.
func TestShardsKeepNoRowsOfOthers(t *testing.T) {
	kept := func(shards int) int {
		w := newWorld(t, 1, slices.Repeat([]int{48 / shards}, shards), anywhere)
		n := w.start(t, newSetup(deep("gcnii", 3), 1, 1, shards)).nodes[0]
		if held := n.kept.Bytes(); held > keeps(n.Worker)+64 {
			t.Errorf("%d shards keep %d bytes, and %d were meant", shards, held, keeps(n.Worker))
		}
		return keeps(n.Worker)
	}
	few, many := kept(2), kept(16)
	const ends = 2 * 64 // of what comes of each shard
	if many > few+14*ends {
		t.Errorf("2 shards keep %d bytes, and 16 of the same vertices %d", few, many)
	}
}
