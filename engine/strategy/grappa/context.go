package grappa

import (
	"iter"
	"slices"

	"github.com/hopmesh/hopmesh/engine/sample"
)

// A Context is what a group sees in a super-epoch. It depends on the plan and on the
// graph, and not on which node has built it. Nobody changes it once it is made.
type Context struct {
	Group, Super int
	Swept        []int // shards beside its own, ascending
	// Topology is the graph as the group sees it: samplers draw Within it.
	Topology *sample.Topology
	// Share is how much of the halo was kept.
	Share float64

	base  span
	inner bits     // vertices of base and swept shards
	rows  bits     // whose in-edges are seen
	has   bits     // inner and halo
	halo  []uint32 // ascending
	// whole says that all in-edges of rows are seen, or that those stand for them of a
	// halo that was sampled.
	whole bool
}

// Halo is the vertices beside those of base and swept shards whose features are read,
// ascending. Nobody writes to it.
func (c *Context) Halo() []uint32 { return c.halo }

// Has says whether features of a vertex are read: it is in a base or a swept shard, or
// in the halo.
func (c *Context) Has(v uint32) bool { return c.has.has(v) }

// Reads are the vertices that Has says yes to, ascending.
func (c *Context) Reads() iter.Seq[uint32] { return c.has.all() }

// Rows counts those of Reads.
func (c *Context) Rows() int { return c.has.count() }

// Root says whether a vertex is in one of the group's own shards.
func (c *Context) Root(v uint32) bool { return c.base.has(v) }

// Edges counts those that are seen.
func (c *Context) Edges() int64 { return c.Topology.Edges() }

// Coverage is how many neighbours of v are seen, and how many it has: edges that are
// not its own to itself, and of a halo that was sampled those of the whole, since the
// messages of what was kept count for the rest. seen is false where its row is not there,
// so that a layer knows nothing of its neighbours, nor how many they are.
func (c *Context) Coverage(v uint32) (a, d int, seen bool) {
	if !c.rows.has(v) {
		return 0, 0, false
	}
	sources, degree := c.Topology.Seen(v)
	a, d = len(sources), degree
	if _, loop := slices.BinarySearch(sources, int32(v)); loop {
		a, d = a-1, d-1
	}
	if c.whole {
		a = d
	}
	return a, d, true
}

// Bytes is about how much memory it takes, beside what lies in shards, and without
// features.
func (c *Context) Bytes() uint64 {
	return 8*uint64(3*len(c.inner)) + 4*uint64(len(c.halo)) + c.Topology.Copied()
}
