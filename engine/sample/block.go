package sample

import "github.com/hopmesh/hopmesh/engine/tensor"

// A Block is one hop: the edges by which sources (its columns) reach targets (its
// rows). Row t of the targets is row Own+t of the sources: in sampled blocks
// targets are the first of the sources (Own is 0), in a part of a whole layer they
// are a run of all vertices.
type Block struct {
	tensor.CSR
	Own      int
	Vertices []uint32 // of the sources; nil where no number depends on them

	// What the block has built before and may build into again. Its CSR may lie
	// elsewhere: in the mapping of a shard, which nobody writes to.
	indptr     []int64
	indices    []int32
	values     []float32
	transposed tensor.Transpose
}

// Weighting is what the values of a block's entries are.
type Weighting uint8

const (
	// Ones has no values: for means, maxima and attention.
	Ones Weighting = iota
	// Sums makes the weighted sum of a sampled row stand for that of the whole
	// row: the edge's own weight, if the graph has weights, times degree/drawn.
	Sums
	// Symmetric is GCN's: Sums divided by the square root of both ends' degrees
	// (those of the whole graph: in-edges with their weights, self-loop included).
	Symmetric
)

// A Form is what a model wants of its blocks.
type Form struct {
	// SelfLoops adds an edge of weight 1 from each target to itself, where the
	// graph has none. It stands first in its row, and is not subject to drawing.
	SelfLoops bool
	Weighting Weighting
}
