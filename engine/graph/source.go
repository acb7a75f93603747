package graph

import "context"

// A Source is a graph being imported. Its vertices are numbered from 0 in the source's
// own order; IDs returns their names there. Edges and Features stream, and may be called
// repeatedly, one call at a time. The rest is in memory and must not be changed.
type Source interface {
	Meta() Meta
	// Edges yields every edge in batches that are valid until yield returns. It stops at
	// yield's first error and returns it unchanged.
	Edges(ctx context.Context, yield func(EdgeBatch) error) error
	// Features yields the vertices' rows in batches, each vertex at most once. A vertex
	// without a row has zeros.
	Features(ctx context.Context, yield func(FeatureBatch) error) error
	// Labels holds a class for each vertex, or NoLabel; nil if there are none.
	Labels() []int32
	// Targets holds targets with columns, if Meta says that there are some. Labels is nil
	// then.
	Targets() Columns
	// Splits holds one row of marks per split.
	Splits() [][]Mark
	IDs() IDs
	// Notes describes for the user what was found and how it was interpreted.
	Notes() []string
	Close() error
}

// Meta describes a source before it is read through.
type Meta struct {
	Format   string // npz, planetoid, ogb, csv, parquet, typed, triples, rmat, sbm
	Vertices uint32
	// Edges is the number of edges in the source, before mirroring and merging.
	Edges    uint64
	Weighted bool
	Features int  // columns, 0: none
	Sparse   bool // features come as sparse rows
	// NonZeros is the number of entries of sparse features. Of a graph with types it may be more:
	// zeros of dense features are left out.
	NonZeros uint64
	Classes  int     // or columns of other targets
	Targets  Targets `json:",omitempty"`
	// ClassNames holds the names of classes, or of columns; nil: they have none.
	ClassNames []string
	// Types are those of vertices and edges; nil: there is one. Edges are Weighted then, and
	// their weights are their relations.
	Types *Types `json:",omitempty"`
	// EdgeFeatures is how many columns of features edges have.
	EdgeFeatures int `json:",omitempty"`
}

// MaxVertices bounds a graph: ids are stored as signed 32-bit numbers.
const MaxVertices = 1<<31 - 1

// EdgeBatch is a batch of edges: messages flow from Src[i] to Dst[i]. Weights is nil if
// the source is not Weighted. Rows holds the features of edges, Meta.EdgeFeatures numbers for
// each.
type EdgeBatch struct {
	Src, Dst []uint32
	Weights  []float32
	Rows     []float32
}

// FeatureBatch is the features of some vertices. Vertices is nil if they are First,
// First+1 and so on. Dense holds the rows one after another; of a sparse source, Indptr
// (one more than rows, from 0), Indices (ascending in a row) and Values hold them
// instead.
type FeatureBatch struct {
	First    uint32
	Vertices []uint32
	Dense    []float32

	Indptr  []int64
	Indices []uint32
	Values  []float32
}

// Vertex returns the vertex of the i-th row.
func (b *FeatureBatch) Vertex(i int) uint32 {
	if b.Vertices != nil {
		return b.Vertices[i]
	}
	return b.First + uint32(i)
}

// NoLabel marks a vertex of unknown class.
const NoLabel int32 = -1

// A Mark is the part of a split that a vertex is in.
type Mark = uint8

// The parts of a split.
const (
	Unmarked Mark = iota
	Train
	Validation
	Test
)

// IDs holds the source's names of the vertices. If both are nil, the names are 0, 1, 2
// and so on.
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

// Progress is the progress of a stage. Total is 0 if unknown.
type Progress struct {
	Stage       string // a few words, such as "reading edges"
	Done, Total uint64
	Unit        string // "edges", "vertices", "bytes"
}
