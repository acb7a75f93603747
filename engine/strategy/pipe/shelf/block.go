package shelf

import (
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Block says where a sample.Block is, with its transpose if it has one.
type Block struct {
	rows, cols     int
	vertices       Array[uint32]
	indptr         Array[int64]
	indices        Array[int32]
	values         Array[float32]
	valued, turned bool
	columns        Array[int64] // of the transpose, as are the next two
	targets, edges Array[int32]
}

// PutBlock adds a copy of a block.
func PutBlock(s *Shelf, b *sample.Block) (at Block, err error) {
	at = Block{rows: b.Rows, cols: b.Cols, valued: b.Values != nil, turned: b.Transposed != nil}
	put[uint32](s, &at.vertices, b.Vertices, &err)
	put[int64](s, &at.indptr, b.Indptr, &err)
	put[int32](s, &at.indices, b.Indices, &err)
	put[float32](s, &at.values, b.Values, &err)
	if t := b.Transposed; t != nil {
		put[int64](s, &at.columns, t.Indptr, &err)
		put[int32](s, &at.targets, t.Rows, &err)
		put[int32](s, &at.edges, t.Edges, &err)
	}
	return at, err
}

// put adds an array, unless one before has failed.
func put[T Element](s *Shelf, a *Array[T], all []T, err *error) {
	if *err == nil {
		*a, *err = Put(s, all)
	}
}

// Get returns the block, whose arrays nobody may change.
func (at *Block) Get(s *Shelf) *sample.Block {
	b := &sample.Block{Vertices: Get(s, at.vertices), CSR: tensor.CSR{Rows: at.rows, Cols: at.cols, Indptr: Get(s, at.indptr), Indices: Get(s, at.indices)}}
	if at.valued {
		b.Values = Get(s, at.values)
	}
	if at.turned {
		b.Transposed = &tensor.Transpose{Indptr: Get(s, at.columns), Rows: Get(s, at.targets), Edges: Get(s, at.edges)}
		b.Stamp = tensor.NewStamp()
	}
	return b
}
