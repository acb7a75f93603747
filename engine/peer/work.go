package peer

import "slices"

// Work is a job as the plan gives it to its nodes: all of them get the same, except for
// Self.
type Work struct {
	Nodes  []string // their names, in the order of the plan; a node is its index
	Self   int
	Owners []int // of each shard: the node that serves it, and usually computes it
	// Holders are, of each shard, the other nodes that hold it, ascending; nil where
	// nobody holds a copy. They may compute in place of the owner.
	Holders [][]int
	// Weights are the relative powers of nodes; nil: all the same.
	Weights []uint64
}

// Alone reports whether one node does it all.
func (w Work) Alone() bool { return len(w.Nodes) < 2 }

// A Layout is where the vertices of a graph are, as all nodes of a job know it.
type Layout struct {
	Nodes  int
	Owners []int    // of each shard
	Firsts []uint32 // of each shard, then how many vertices there are

	// Holders and Weights are Work's. Costs are the relative mean costs of computing a
	// root of each shard; nil: all the same.
	Holders [][]int
	Weights []uint64
	Costs   []uint64
	Members uint64 // a digest of the nodes' identities, in any order; 0: not known
}

// Vertices counts those of the graph.
func (l *Layout) Vertices() uint32 { return l.Firsts[len(l.Firsts)-1] }

// Shard returns the shard of a vertex.
func (l *Layout) Shard(v uint32) int {
	// Of shards without vertices, which share their first with the next, the one with
	// vertices is the last.
	at, found := slices.BinarySearch(l.Firsts, v)
	if !found {
		return at - 1
	}
	for l.Firsts[at+1] == v {
		at++
	}
	return at
}

// Owner returns the node that owns a vertex.
func (l *Layout) Owner(v uint32) int { return l.Owners[l.Shard(v)] }
