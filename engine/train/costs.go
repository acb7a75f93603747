package train

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/replica"
)

// costsOf are about how many edges a root of each shard brings into a batch: those of its
// first hop by the in-degree that vertices of its shard have on average, those of further
// hops by that of all. That much all nodes know of all shards, whatever they hold.
func costsOf(r *replica.Replica, fanouts []int) []uint64 {
	const one = 1 << 8 // an edge
	mean := func(edges, vertices uint64, fanout int) uint64 {
		const most = 1 << 20
		if fanout <= 0 {
			fanout = most
		}
		return min(edges*one/max(1, vertices), uint64(min(fanout, most))*one)
	}
	edges, all := make([]uint64, len(r.Shards)), uint64(0)
	for i, s := range r.Shards {
		edges[i] = uint64(len(s.Indices))
		if of := r.Summaries[i]; of != nil {
			edges[i] = uint64(of.Edges)
		}
		all += edges[i]
	}
	further := uint64(one) // a neighbour, and all that it brings in its turn
	for _, fanout := range slices.Backward(fanouts[min(1, len(fanouts)):]) {
		further = min(one+mean(all, uint64(r.Shards[0].Total), fanout)*further/one, 1<<32)
	}
	costs := make([]uint64, len(edges))
	for i, s := range r.Shards {
		costs[i] = one
		if len(fanouts) > 0 {
			costs[i] += mean(edges[i], uint64(s.Vertices), fanouts[0]) * further / one
		}
	}
	return costs
}

// members is a digest of who some nodes are, in any order.
func members(names []string) uint64 {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(names)), "\x00")))
	return binary.LittleEndian.Uint64(sum[:])
}
