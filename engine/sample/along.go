package sample

import (
	"errors"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Along is what layers need of a block that compute a row for each of its entries: matrices that
// bring rows of sources to entries, and rows of entries to targets, with the operations that
// devices have.
type Along struct {
	// Rows are the features of the entries' edges, Columns for each. An added self-loop has the
	// mean of those of the other entries in its row, or zeros if there are none.
	Columns int
	Rows    []float32
	// Sources has a row for each entry, with its source as the only column. Targets has the block's
	// rows, with their entries as columns and the block's values.
	Sources, Targets tensor.CSR
	// Vertices are those of the entries' sources, then those of the targets; nil if the block has
	// none.
	Vertices []uint32

	loops  []int32 // targets with an added self-loop, whose entry is their first
	counts []int64 // 0, 1, 2 and so on
	places []int32 // the same
	rows   []int32 // the target of each entry
	back   [2]tensor.Transpose
}

var errEdgesElsewhere = errors.New("the model reads features of edges, of which this node has those of its own shards only: use {topology}=replicated")

// edgeRowsOf returns the features of a shard's edges, or nil if they are not here.
func edgeRowsOf(s *graph.Shard) *graph.EdgeRows {
	if s.EdgeRows.Columns == 0 || s.Indptr == nil {
		return nil
	}
	return &s.EdgeRows
}

// mean sets to to the mean of rows, or to zeros if there are none.
func mean(to, rows []float32) {
	clear(to)
	if len(rows) == 0 {
		return
	}
	for row := range slices.Chunk(rows, len(to)) {
		for c, x := range row {
			to[c] += x
		}
	}
	for c := range to {
		to[c] /= float32(len(rows) / len(to))
	}
}

// describeLoops sets the features of added self-loops, once no more entries are removed.
func (b *Block) describeLoops(f Form) {
	a := &b.along
	a.Columns = f.EdgeFeatures
	for _, target := range a.loops {
		first, end := int(b.Indptr[target])*a.Columns, int(b.Indptr[target+1])*a.Columns
		mean(a.Rows[first:first+a.Columns], a.Rows[first+a.Columns:end])
	}
}

// follow makes the matrices of the block's entries, whose features are there.
func (b *Block) follow(f Form) {
	b.describeLoops(f)
	a, n := &b.along, b.Entries()
	for len(a.places) <= n {
		a.counts, a.places = append(a.counts, int64(len(a.counts))), append(a.places, int32(len(a.places)))
	}
	indices := b.Indices[b.Indptr[0]:][:n]
	a.Sources = tensor.CSR{Rows: n, Cols: b.Cols, Indptr: a.counts[:n+1], Indices: indices, Stamp: tensor.NewStamp()}
	a.Targets = tensor.CSR{Rows: b.Rows, Cols: n, Indptr: b.Indptr, Indices: a.places[:n], Values: b.Values, Stamp: tensor.NewStamp()}
	a.Vertices = a.Vertices[:0]
	if b.Vertices != nil {
		for _, i := range indices {
			a.Vertices = append(a.Vertices, b.Vertices[i])
		}
		a.Vertices = append(a.Vertices, b.Vertices[b.Own:b.Own+b.Rows]...)
	}
	b.Along = a
}

// bare gives access to the features of the entries' edges, which are there, without matrices.
func (b *Block) bare(f Form) {
	if f.EdgeFeatures == 0 {
		return
	}
	b.describeLoops(f)
	b.Along = &b.along
}

// transposeAlong builds the transposes of what follow has made.
func (b *Block) transposeAlong() {
	a, n := b.Along, b.Entries()
	transpose(&b.CSR, &b.transposed)
	a.back[0] = tensor.Transpose{Indptr: b.transposed.Indptr, Rows: b.transposed.Edges, Edges: b.transposed.Edges}
	a.Sources.Transposed, a.Sources.Stamp = &a.back[0], tensor.NewStamp()
	a.rows = slices.Grow(a.rows[:0], n)
	for t := range b.Rows {
		for range b.Indptr[t+1] - b.Indptr[t] {
			a.rows = append(a.rows, int32(t))
		}
	}
	a.back[1] = tensor.Transpose{Indptr: a.counts[:n+1], Rows: a.rows, Edges: a.places[:n]}
	a.Targets.Transposed, a.Targets.Stamp = &a.back[1], tensor.NewStamp()
}

// EntriesAlong returns the matrices of the block's entries, with these columns of features. Those of a
// block that is only counted have no arrays.
func (b *Block) EntriesAlong(columns int) *Along {
	if b.Along != nil {
		return b.Along
	}
	n := b.Entries()
	there := &tensor.There{Entries: n}
	return &Along{Columns: columns, Sources: tensor.CSR{Rows: n, Cols: b.Cols, There: there}, Targets: tensor.CSR{Rows: b.Rows, Cols: n, There: there}}
}

// alongBytes returns what a block of this size takes beside itself and its transpose for layers
// that compute a row for each entry.
func (f Form) alongBytes(z Size) uint64 {
	if !f.Along {
		return 0
	}
	return uint64(z.Entries)*uint64(8+4+4+4+4*f.EdgeFeatures) + 4*uint64(z.Targets) + f.addedBytes(z) + 16
}

// addedBytes returns what the list of targets with an added self-loop takes.
func (f Form) addedBytes(z Size) uint64 {
	if !f.SelfLoops || f.EdgeFeatures == 0 {
		return 0
	}
	return 4 * uint64(z.Targets)
}
