package tensor

import "sync/atomic"

// A CSR is a sparse matrix by rows: the edges of a block (rows are targets, columns are
// sources), or the rows of sparse features.
type CSR struct {
	Rows, Cols int
	// The entries of row r are Indptr[r] to Indptr[r+1]; the first need not be 0.
	Indptr  []int64
	Indices []int32   // the columns
	Values  []float32 // nil: all 1
	// Transposed is needed by the backward pass; it may be nil.
	Transposed *Transpose
	// Stamp tells a device that caches copies of CSRs whether the arrays have changed:
	// whoever changes them, or their transpose, sets a new one. With 0 no copy is cached.
	Stamp uint64
	// There is set if the arrays exist in a device's memory only: all slices are then
	// nil, also those of Transposed, which is set if the device has the transpose.
	There *There
}

// There identifies the arrays of a CSR in a device's memory. They are valid until the
// device replaces them.
type There struct {
	Entries int
	Valued  bool // there are values
	At      any  // the device's own reference to them
}

var stamps atomic.Uint64

// NewStamp returns a stamp that no CSR has had.
func NewStamp() uint64 { return stamps.Add(1) }

// A Transpose is the same entries by columns.
type Transpose struct {
	// The entries of column c are Indptr[c] to Indptr[c+1], by ascending row.
	Indptr []int64
	Rows   []int32
	Edges  []int32 // position of the entry in the CSR, from its Indptr[0]
}

// Entries returns the number of entries.
func (g *CSR) Entries() int {
	if g.There != nil {
		return g.There.Entries
	}
	return int(g.Indptr[g.Rows] - g.Indptr[0])
}

// First returns the first element of Indptr.
func (g *CSR) First() int {
	if g.There != nil {
		return 0
	}
	return int(g.Indptr[0])
}

// Valued reports whether the entries have their own values.
func (g *CSR) Valued() bool { return g.Values != nil || g.There != nil && g.There.Valued }
