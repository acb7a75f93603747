package pipe

import "github.com/hopmesh/hopmesh/engine/sample"

// A Census is what time and memory depend on of a graph: counts that all nodes come to
// alike, since each has all edges.
type Census struct {
	Firsts   []uint32 // of each shard, then how many vertices there are
	Sources  []int    // of each shard: the rows that its block has, its own included
	Entries  []int    // and the edges, with those from vertices to themselves that are added
	topology *sample.Topology
	marks    []uint64 // a bit a vertex
}

// NewCensus counts, where blocks are of a form.
func NewCensus(firsts []uint32, t *sample.Topology, form sample.Form) *Census {
	shards := len(firsts) - 1
	c := &Census{Firsts: firsts, Sources: make([]int, shards), Entries: make([]int, shards), topology: t}
	var vertices []uint32
	for shard := range shards {
		vertices = vertices[:0]
		for v := firsts[shard]; v < firsts[shard+1]; v++ {
			vertices = append(vertices, v)
		}
		c.Sources[shard], c.Entries[shard] = c.around(vertices, form.SelfLoops)
	}
	return c
}

// vertices counts those of a shard.
func (c *Census) vertices(shard int) int { return int(c.Firsts[shard+1] - c.Firsts[shard]) }
