package exchange

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// All nodes come to all rows, whoever has which shards, also where these take several windows,
// and where a node has none.
func TestRowsOfAllNodes(t *testing.T) {
	defer func(was int) { rowsWindow = was }(rowsWindow)
	r := rand.New(rand.NewPCG(1, 1))
	for _, window := range []int{8 << 20, 52, 4} {
		rowsWindow = window
		for nodes := 1; nodes <= 4; nodes++ {
			l := &peer.Layout{Nodes: nodes, Owners: []int{0, 2 % nodes, 0, 0, 1 % nodes}, Firsts: []uint32{0, 3, 10, 10, 11, 16}}
			const columns = 3
			want := make([]float32, 16*columns)
			for i := range want {
				want[i] = r.Float32()
			}
			_, all := mesh(nodes)
			rows := make([][]float32, nodes)
			must(t, each(all, func(node int, x *Exchange) error {
				rows[node] = make([]float32, len(want))
				for shard, owner := range l.Owners {
					if owner == node {
						first, end := l.Firsts[shard]*columns, l.Firsts[shard+1]*columns
						copy(rows[node][first:end], want[first:end])
					}
				}
				return GatherRows(t.Context(), x, Tag{Epoch: 3, Index: 7}, l, rows[node], columns, nil)
			}))
			for node := range rows {
				if !slices.Equal(rows[node], want) {
					t.Errorf("node %d of %d, windows of %d bytes: %v, want %v", node, nodes, window, rows[node], want)
				}
			}
		}
	}
}

// A node that has other rows than it should says so many bytes that nobody takes them.
func TestRowsThatDoNotFit(t *testing.T) {
	_, all := mesh(2)
	err := each(all, func(node int, x *Exchange) error {
		l := &peer.Layout{Nodes: 2, Owners: []int{0, 1}, Firsts: []uint32{0, 3, uint32(5 + node)}}
		return GatherRows(t.Context(), x, Tag{Epoch: 3}, l, make([]float32, 5+node), 1, nil)
	})
	if err == nil || err.Error() != "node b sent 12 bytes of rows in place of 8" {
		t.Error(err)
	}
}
