package grappa

import (
	"iter"
	"slices"

	"github.com/hopmesh/hopmesh/engine/sample"
)

// A Context is what a group sees in a super-epoch. It depends on the plan and on the
// graph, and not on which node has built it. It is immutable.
type Context struct {
	Group, Super int
	Swept        []int // shards beside its own, ascending
	// Topology is the graph as the group sees it, for sampling Within it.
	Topology *sample.Topology
	// Share is how much of the halo was kept.
	Share float64

	base  span
	inner bits     // vertices of base and swept shards
	rows  bits     // whose in-edges are seen
	has   bits     // inner and halo
	halo  []uint32 // ascending
	// whole means that all in-edges of rows are seen, or that a sampled halo stands for
	// all of them.
	whole bool
}

// Halo returns the vertices outside base and swept shards whose features are read,
// ascending. The caller must not change it.
func (c *Context) Halo() []uint32 { return c.halo }

// Has reports whether features of a vertex are read: it is in a base or a swept shard,
// or in the halo.
func (c *Context) Has(v uint32) bool { return c.has.has(v) }

// Reads yields the vertices for which Has is true, ascending.
func (c *Context) Reads() iter.Seq[uint32] { return c.has.all() }

// Rows counts those of Reads.
func (c *Context) Rows() int { return c.has.count() }

// Root reports whether a vertex is in one of the group's own shards.
func (c *Context) Root(v uint32) bool { return c.base.has(v) }

// Edges counts the edges that are seen.
func (c *Context) Edges() int64 { return c.Topology.Edges() }

// Coverage returns how many neighbours of v are seen, and how many it has. It counts
// edges, but for v's own to itself. A sampled halo counts as the whole one, since the
// messages of its rows stand for the rest. seen is false where v's row is not there, so
// that its neighbours and their number are unknown.
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

// Bytes estimates the memory of the context, without shards and features.
func (c *Context) Bytes() uint64 {
	return 8*uint64(3*len(c.inner)) + 4*uint64(len(c.halo)) + c.Topology.Copied()
}
