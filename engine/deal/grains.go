package deal

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// Grains are the roots of a batch, shard by shard. They keep their memory.
type Grains struct {
	ends   []int    // of each shard's roots
	shards []uint32 // of each root of the batch
	roots  []uint32
}

// Cut cuts a batch. Roots stay in its order within a grain.
func (g *Grains) Cut(l *peer.Layout, batch []uint32) {
	g.ends = slices.Grow(g.ends[:0], len(l.Owners))[:len(l.Owners)]
	clear(g.ends)
	g.shards = g.shards[:0]
	for _, v := range batch {
		shard := l.Shard(v)
		g.shards = append(g.shards, uint32(shard))
		g.ends[shard]++
	}
	sum := 0
	for i, n := range g.ends {
		g.ends[i] = sum // the grain's start, until its roots are in
		sum += n
	}
	g.roots = append(g.roots[:0], batch...)
	for i, v := range batch {
		shard := g.shards[i]
		g.roots[g.ends[shard]] = v
		g.ends[shard]++
	}
}

// Of returns the roots in a shard.
func (g *Grains) Of(shard int) []uint32 { return g.roots[g.before(shard):g.ends[shard]] }

// Run returns which of so many even runs of all roots a grain falls to, by its middle.
// Runs are of whole grains in the order of shards, and each differs from an even one by
// half a grain at most at each end. The grain must have roots.
func (g *Grains) Run(shard, runs int) int {
	return (g.before(shard) + g.ends[shard]) * runs / (2 * len(g.roots))
}

func (g *Grains) before(shard int) int {
	if shard == 0 {
		return 0
	}
	return g.ends[shard-1]
}

// Slice returns one of so many parts of a batch, in the order of the batch. Their sizes
// differ by one at most.
func Slice[E any](batch []E, part, parts int) []E {
	return batch[len(batch)*part/parts : len(batch)*(part+1)/parts]
}

// More appends a group without roots to to, of no grain, whose model is local, reusing
// the memory of a group there.
func More(to []Group) ([]Group, *Group) {
	n := len(to)
	if n == cap(to) {
		to = append(to, Group{})
	}
	to = to[:n+1]
	to[n] = Group{Roots: to[n].Roots[:0], Grain: -1, From: -1}
	return to, &to[n]
}
