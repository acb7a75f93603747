package sample

import "github.com/hopmesh/hopmesh/engine/tensor"

// A Block is one hop: a sparse matrix whose rows are targets and whose columns are
// sources. Target row t is source row Own+t. In sampled blocks the targets are the first
// of the sources (Own is 0); in a part of a whole layer they are a run of all vertices.
type Block struct {
	tensor.CSR
	Own      int
	Vertices []uint32 // of the sources; nil if no number depends on them
	// Related is the matrix by relation, if the form has relations.
	Related *Related
	// Apart has a matrix for each relation instead, with the block's rows and columns, if the form
	// keeps relations apart. Reach says which of them reach a target: row t has the column
	// r*Rows + t for each relation r that ends at the target's type.
	Apart []tensor.CSR
	Reach *tensor.CSR
	// Idle are the relations that reach no target of the block.
	Idle []bool
	// Together is the block for layers that attend over all relations at once, if the form says so.
	Together *Together
	// Along has what layers need that compute a row for each entry, if the form says so.
	Along *Along

	// Arrays built earlier, to be reused. The block's CSR may lie elsewhere: in the
	// read-only mapping of a shard.
	indptr     []int64
	indices    []int32
	values     []float32
	transposed tensor.Transpose
	related    related
	along      Along
}

// Weighting defines the values of a block's entries.
type Weighting uint8

const (
	// Ones means no values: for means, maxima and attention.
	Ones Weighting = iota
	// Sums makes the weighted sum of a sampled row an estimate of the whole row's: the
	// edge's own weight, if the graph has weights, times degree/drawn.
	Sums
	// Symmetric is GCN's normalisation: Sums divided by the square roots of both ends'
	// degrees in the whole graph (weighted in-degrees, with the self-loop).
	Symmetric
	// Own is the weight of the edge itself, 1 if the graph has none, whatever is drawn.
	Own
)

// A Form is a model's requirements for its blocks.
type Form struct {
	// SelfLoops adds an edge of weight 1 from each target to itself, if the graph has
	// none. It comes first in its row and is always kept.
	SelfLoops bool
	Weighting Weighting
	// Relations is how many relations the edges have, for models that tell them apart. Then the
	// values of entries are their relations until the matrix by relation is made of them, and there
	// are no self-loops.
	Relations int
	// Apart makes a matrix for each relation in place of one by relation, for models that have a
	// convolution for each. Ends is the type at which each relation ends, as ParseEnds reads it.
	// The type of a target is that at which its in-edges end: a target without any has none, and
	// no relation reaches it.
	Apart bool
	Ends  string
	// Together makes a block by relation and by type of targets, which Ends says, for models in which
	// a target attends over all its in-edges.
	Together bool
	// Along is for models that compute a row for each edge. EdgeFeatures is how many features of
	// edges they read; all edges must be here then.
	Along        bool
	EdgeFeatures int
	// Plain is for whoever reads what edges have, and has no layers: the relations of entries stay
	// their values, and the features of edges are Along.Rows without any matrix.
	Plain bool
}

// Valued reports whether entries have values when they are drawn.
func (f Form) Valued() bool { return f.Weighting != Ones || f.Relations > 0 }
