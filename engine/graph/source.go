package graph

import "context"

// A Source is a graph as it comes in. Its vertices are numbered from 0 in the
// source's own order; what they are called there, IDs says. Edges and Features
// stream, and may be called as often as needed, one call at a time; the rest lies
// in memory and must not be changed.
type Source interface {
	Meta() Meta
	// Edges yields every edge in batches that are valid until yield returns. An
	// error of yield ends it and is returned as it is.
	Edges(ctx context.Context, yield func(EdgeBatch) error) error
	// Features yields the vertices' rows in batches, each vertex at most once. A
	// vertex without a row has zeros.
	Features(ctx context.Context, yield func(FeatureBatch) error) error
	// Labels holds a class for each vertex, or NoLabel; nil if there are none.
	Labels() []int32
	// Splits holds one row of marks for each split.
	Splits() [][]Mark
	IDs() IDs
	// Notes are sentences on what was found and how it was taken, for the user.
	Notes() []string
	Close() error
}

// Meta says what a source holds before it is read through.
type Meta struct {
	Format   string // npz, planetoid, ogb, csv, parquet, rmat, sbm
	Vertices uint32
	// Edges is how many edges the source lists, before any is mirrored or merged.
	Edges    uint64
	Weighted bool
	Features int  // columns, 0: none
	Sparse   bool // features come as sparse rows
	// NonZeros is how many entries sparse features have.
	NonZeros uint64
	Classes  int
}

// MaxVertices bounds a graph: ids are stored as signed numbers of 32 bits.
const MaxVertices = 1<<31 - 1

// EdgeBatch is some edges: messages flow from Src[i] to Dst[i]. Weights is nil for
// a source that is not Weighted.
type EdgeBatch struct {
	Src, Dst []uint32
	Weights  []float32
}

// FeatureBatch is the features of some vertices. Vertices is nil if they are First,
// First+1 and so on. Rows lie in Dense one after another; of a sparse source,
// Indptr (one more than there are rows, from 0), Indices (ascending in a row) and
// Values hold them instead.
type FeatureBatch struct {
	First    uint32
	Vertices []uint32
	Dense    []float32

	Indptr  []int64
	Indices []uint32
	Values  []float32
}

// Vertex is whose row the i-th is.
func (b *FeatureBatch) Vertex(i int) uint32 {
	if b.Vertices != nil {
		return b.Vertices[i]
	}
	return b.First + uint32(i)
}

// NoLabel marks a vertex whose class is not known.
const NoLabel int32 = -1

// A Mark says which part of a split a vertex is in.
type Mark = uint8

// The parts of a split.
const (
	Unmarked Mark = iota
	Train
	Validation
	Test
)

// IDs is what the vertices are called in the source. Both nil: 0, 1, 2 and so on.
type IDs struct {
	Ints    []int64
	Strings *Strings
}

// Strings holds many strings in two slices: the i-th is
// Bytes[Offsets[i]:Offsets[i+1]].
type Strings struct {
	Offsets []int64
	Bytes   []byte
}

// Progress is how far a stage has come. Total is 0 where it can't be known.
type Progress struct {
	Stage       string // a few words, such as "reading edges"
	Done, Total uint64
	Unit        string // "edges", "vertices", "bytes"
}
