package graph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
	"github.com/hopmesh/hopmesh/engine/mapped"
)

// ShardFormat is the format name in the metadata of a shard file.
const ShardFormat = "hopmesh-shard/1"

// A Shard is a mapped shard file, or what a Skeleton holds of a remote one. All slices
// lie in the mapping: they must not be written to, and are invalid after Close. Rows
// count from 0 at First.
type Shard struct {
	Number   int // number of shards
	Shards   int
	First    uint32 // the id of row 0
	Vertices int    // rows
	Total    uint32 // vertices of the whole graph
	Features int    // columns
	Classes  int    // or columns of targets
	DType    DType

	// The in-edges of row v are Indptr[v] to Indptr[v+1]. Indices holds the ids of their
	// sources in the whole graph, ascending within a row.
	Indptr  []int64
	Indices []int32
	EdgeValues

	// Features are dense, Features elements per row, in one of these two; or sparse.
	DenseRows
	Sparse *SparseRows

	// Labels are classes; nil: there are none. Of other targets, they are 0 where a row has
	// one, and Wide has them.
	Labels []int32
	Wide
	Marks     [][]Mark  // one row per split
	Originals Originals // the source's name of each row

	file *safetensors.File
}

// EdgeValues holds what is known of each in-edge beside its ends.
type EdgeValues struct {
	Weights  []float32 // nil: all 1
	Related  *Related  // nil: the graph has no relations; else there are no weights
	EdgeRows EdgeRows
}

// DenseRows holds features stored as dense rows.
type DenseRows struct {
	Dense     []float32
	DenseBF16 []uint16
}

// Wide holds targets with columns, Shard.Classes in each row.
type Wide struct {
	Targets Targets
	Columns
}

// SparseRows holds features stored as sparse rows: the entries of row v are Indptr[v] to
// Indptr[v+1], columns ascending. Either Values or ValuesBF16 is set.
type SparseRows struct {
	Indptr     []int64
	Columns    []int32
	Values     []float32
	ValuesBF16 []uint16
}

// Originals holds the source's names of a shard's vertices: numbers, or strings if
// Offsets is not nil.
type Originals struct {
	Ints    []int64
	Offsets []int64
	Bytes   []byte
}

// Append appends the source's name of a row.
func (o Originals) Append(to []byte, row int) []byte {
	if o.Offsets != nil {
		return append(to, o.Bytes[o.Offsets[row]:o.Offsets[row+1]]...)
	}
	return strconv.AppendInt(to, o.Ints[row], 10)
}

// OpenShard maps a shard file and checks everything that its readers rely on.
func OpenShard(path string) (*Shard, error) {
	file, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	s := &Shard{file: file}
	if err := s.tryLoad(); err != nil {
		return nil, errors.Join(fmt.Errorf("the shard %s is not usable: %w", path, err), file.Close())
	}
	return s, nil
}

// tryLoad is load of a file that may be cut short meanwhile.
func (s *Shard) tryLoad() (err error) {
	defer mapped.End(mapped.Guard())
	defer mapped.Caught(&err)
	return s.load()
}

// Info describes the file as it was when it was opened.
func (s *Shard) Info() os.FileInfo { return s.file.Info() }

// Broken reports whether reading the mapped file has failed: see package mapped.
func (s *Shard) Broken() bool { return s.file.Broken() }

// SHA256 returns the digest of the file as it is mapped, which may have been removed or replaced
// since. The error is that of reading it.
func (s *Shard) SHA256() (string, error) { return s.file.SHA256() }

// Stream passes the file as it is mapped to a function, in order and in pieces. The error is that of
// ctx, or of reading it.
func (s *Shard) Stream(ctx context.Context, each func(piece []byte)) error {
	return s.file.Stream(ctx, each)
}

// Close unmaps the file, which invalidates all slices of the shard.
func (s *Shard) Close() error { return s.file.Close() }
