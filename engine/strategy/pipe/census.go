package pipe

import (
	"math/bits"

	"github.com/hopmesh/hopmesh/engine/sample"
)

// A Census is what time and memory depend on of a graph: counts that all nodes come to
// alike, since each has all edges.
type Census struct {
	Firsts   []uint32 // of each shard, then how many vertices there are
	Sources  []int    // of each shard: the rows that its block has, its own included
	Entries  []int    // and the edges, with those from vertices to themselves that are added
	topology *sample.Topology
}

// NewCensus counts, where blocks are of a form.
func NewCensus(firsts []uint32, t *sample.Topology, form sample.Form) *Census {
	shards := len(firsts) - 1
	c := &Census{Firsts: firsts, Sources: make([]int, shards), Entries: make([]int, shards), topology: t}
	marks := make([]uint64, (t.Vertices()+63)/64)
	for shard := range shards {
		clear(marks)
		for v := firsts[shard]; v < firsts[shard+1]; v++ {
			marks[v/64] |= 1 << (v % 64)
			sources, _ := t.Row(int(v))
			c.Entries[shard] += len(sources)
			loop := false
			for _, u := range sources {
				marks[u/64] |= 1 << (u % 64)
				loop = loop || uint32(u) == v
			}
			if form.SelfLoops && !loop {
				c.Entries[shard]++
			}
		}
		for _, m := range marks {
			c.Sources[shard] += bits.OnesCount64(m)
		}
	}
	return c
}

// vertices counts those of a shard.
func (c *Census) vertices(shard int) int { return int(c.Firsts[shard+1] - c.Firsts[shard]) }

// all counts those of the graph.
func (c *Census) all() int { return int(c.Firsts[len(c.Firsts)-1]) }

// edges counts those of all shards.
func (c *Census) edges() (n int) {
	for _, of := range c.Entries {
		n += of
	}
	return n
}
