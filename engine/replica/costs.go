package replica

import "slices"

// Costs estimates how many edges a root of each shard brings into a batch. It takes
// the shard's average in-degree for the first hop and the graph's for further hops: all
// nodes know these of all shards, whatever they hold.
func (r *Replica) Costs(fanouts []int) []uint64 {
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
