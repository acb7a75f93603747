package grappa

import (
	"iter"
	"slices"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/vicinity"
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
	inner *vicinity.Set // vertices of base and swept shards
	rows  *vicinity.Set // whose in-edges are seen
	has   *vicinity.Set // inner and halo
	// whole means that all in-edges of rows are seen, or that a sampled halo stands for
	// all of them.
	whole bool
}

// Halo yields the vertices outside base and swept shards whose features are read,
// ascending, and HaloRows counts them.
func (c *Context) Halo() iter.Seq[uint32] { return c.has.Without(c.inner) }

// HaloRows counts those of Halo.
func (c *Context) HaloRows() int { return c.has.Len() - c.inner.Len() }

// Has reports whether features of a vertex are read: it is in a base or a swept shard,
// or in the halo.
func (c *Context) Has(v uint32) bool { return c.has.Has(v) }

// Reads yields the vertices for which Has is true, ascending.
func (c *Context) Reads() iter.Seq[uint32] { return c.has.All() }

// Rows counts those of Reads.
func (c *Context) Rows() int { return c.has.Len() }

// Root reports whether a vertex is in one of the group's own shards.
func (c *Context) Root(v uint32) bool { return c.base.has(v) }

// Edges counts the edges that are seen.
func (c *Context) Edges() int64 { return c.Topology.Edges() }

// Coverage returns how many neighbours of v are seen, and how many it has. It counts
// edges, but for v's own to itself. A sampled halo counts as the whole one, since the
// messages of its rows stand for the rest. seen is false where v's row is not there, so
// that its neighbours and their number are unknown.
func (c *Context) Coverage(v uint32) (a, d int, seen bool) {
	if !c.rows.Has(v) {
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

// Index returns the memory of the sets of vertices. Bytes returns how much else is copied,
// without shards and features.
func (c *Context) Index() (bytes uint64) {
	bytes = c.inner.Bytes()
	if c.rows != c.inner {
		bytes += c.rows.Bytes()
	}
	if c.has != c.inner {
		bytes += c.has.Bytes()
	}
	return bytes
}

// Bytes returns how much is copied of the graph's edges.
func (c *Context) Bytes() uint64 { return c.Topology.Copied() }

// Inner reports whether a vertex is in a base or a swept shard.
func (c *Context) Inner(v uint32) bool { return c.inner.Has(v) }
