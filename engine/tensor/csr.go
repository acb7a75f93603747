package tensor

import "sync/atomic"

// A CSR is a sparse matrix by rows: the edges of a block, rows being targets and
// columns sources, or the rows of sparse features.
type CSR struct {
	Rows, Cols int
	// The entries of row r are Indptr[r] to Indptr[r+1]; the first need not be 0.
	Indptr  []int64
	Indices []int32   // the columns
	Values  []float32 // nil: all 1
	// Transposed is what backward needs, nil where there is none.
	Transposed *Transpose
	// Stamp tells a device that keeps copies of CSRs whether the arrays are what they
	// were when it copied them: whoever fills them, or their transpose, takes a new one.
	// With 0 no copy is kept.
	Stamp uint64
	// There is where a device has the arrays that made them, and nobody else: all slices
	// are nil then, and Transposed, if the device has that, has none. nil: they are here.
	There *There
}

// There are the arrays of a CSR in a device's memory. They hold until the device makes
// others in their place.
type There struct {
	Entries int
	Valued  bool // there are values
	At      any  // what the device knows them by
}

var stamps atomic.Uint64

// NewStamp is one that no CSR has had.
func NewStamp() uint64 { return stamps.Add(1) }

// A Transpose is the same entries by columns.
type Transpose struct {
	// The entries of column c are Indptr[c] to Indptr[c+1], by ascending row.
	Indptr []int64
	Rows   []int32
	Edges  []int32 // where the entry stands in the CSR, from its Indptr[0]
}

// Entries counts them.
func (g *CSR) Entries() int {
	if g.There != nil {
		return g.There.Entries
	}
	return int(g.Indptr[g.Rows] - g.Indptr[0])
}

// First is what Indptr begins with.
func (g *CSR) First() int {
	if g.There != nil {
		return 0
	}
	return int(g.Indptr[0])
}

// Valued says whether the entries have values of their own.
func (g *CSR) Valued() bool { return g.Values != nil || g.There != nil && g.There.Valued }
