package exchange

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// rowsWindow is how many bytes of its rows a node says at once. All nodes have the same.
var rowsWindow = 8 << 20

// GatherRows completes the rows of all vertices, each of so many numbers, where each node has set
// those of its shards: it says these to all, window by window. It takes the indices from the
// tag's on, one for each window.
func GatherRows(ctx context.Context, x *Exchange, t Tag, l *peer.Layout, rows []float32, columns int, tally *peer.Tally) error {
	most := 0
	for node := range x.work.Nodes {
		bytes := 0
		for shard, owner := range l.Owners {
			if owner == node {
				bytes += 4 * columns * int(l.Firsts[shard+1]-l.Firsts[shard])
			}
		}
		most = max(most, bytes)
	}
	var mine []byte
	for from := 0; from < most; from += rowsWindow {
		mine = mine[:0]
		windowOf(l, rows, columns, x.work.Self, from, func(some []byte) { mine = append(mine, some...) })
		all, err := x.Gather(ctx, t, mine, tally)
		if err != nil {
			return err
		}
		t.Index++
		for node, message := range all {
			want := 0
			windowOf(l, rows, columns, node, from, func(some []byte) { want += len(some) })
			if len(message) != want {
				return fmt.Errorf("node %s sent %d bytes of rows in place of %d", x.work.Nodes[node], len(message), want)
			}
			if node != x.work.Self {
				windowOf(l, rows, columns, node, from, func(some []byte) { message = message[copy(some, message):] })
			}
		}
	}
	return nil
}

// windowOf calls do for what a node's window that begins at a byte has of each of its shards' rows.
func windowOf(l *peer.Layout, rows []float32, columns, node, from int, do func(some []byte)) {
	at, to := 0, from+rowsWindow
	for shard, owner := range l.Owners {
		if owner != node {
			continue
		}
		of := plain.Bytes(rows[int(l.Firsts[shard])*columns : int(l.Firsts[shard+1])*columns])
		if first, end := max(from, at), min(to, at+len(of)); first < end {
			do(of[first-at : end-at])
		}
		at += len(of)
	}
}

// RowBytes returns what GatherRows takes of memory beside rows of so many bytes, on so many
// nodes: messages of all nodes, two of each, and this node's own rows as long as others may ask
// for them, which is until those after the next are said.
func RowBytes(own, rows uint64, nodes int) uint64 {
	window := uint64(rowsWindow)
	if own > window {
		own = (own + window - 1) / window * window // memory of any of them may be used for the last
	}
	return 2*own + uint64(2*nodes+1)*min(rows, window)
}
