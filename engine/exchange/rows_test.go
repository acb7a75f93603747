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

// However often rows are said, a node keeps no more of them than it says that it needs.
func TestMemoryOfRows(t *testing.T) {
	defer func(was int) { rowsWindow = was }(rowsWindow)
	rowsWindow = 1 << 12
	const columns, own, all = 4, 9000, 10000
	l := &peer.Layout{Nodes: 2, Owners: []int{0, 1}, Firsts: []uint32{0, own, all}}
	_, nodes := mesh(2)
	for step := range uint32(6) {
		must(t, each(nodes, func(_ int, x *Exchange) error {
			return GatherRows(t.Context(), x, Tag{Epoch: 1, Step: step}, l, make([]float32, all*columns), columns, nil)
		}))
	}
	took, lane := uint64(0), nodes[0].lane(LaneMessages)
	for _, o := range lane.offers {
		took += 8 * uint64(cap(o.own))
	}
	for _, o := range lane.idle {
		took += 8 * uint64(cap(o.own))
	}
	for i := range nodes[0].messages {
		for _, c := range nodes[0].messages[i].calls {
			took += 8 * uint64(cap(c.memory))
		}
	}
	const bytes = 4 * columns
	if says := RowBytes(bytes*own, bytes*all, 2); took > says || took < says*9/10 {
		t.Errorf("it takes %d bytes, and says %d", took, says)
	}
}
