package graph

import (
	"fmt"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
)

// MaxEdgeFeatures bounds the columns of features of edges: there is a row for each edge.
const MaxEdgeFeatures = 4096

// EdgeRows holds the features of a shard's in-edges: Columns numbers for each, in the order of
// Indices. Both slices are nil if the edges are not here.
type EdgeRows struct {
	Columns int // 0: edges have no features
	F32     []float32
	BF16    []uint16
}

// Append appends the features of an edge, by its place in the shard.
func (r *EdgeRows) Append(to []float32, edge int64) []float32 {
	from := edge * int64(r.Columns)
	if r.BF16 == nil {
		return append(to, r.F32[from:from+int64(r.Columns)]...)
	}
	for _, x := range r.BF16[from : from+int64(r.Columns)] {
		to = append(to, FromBF16(x))
	}
	return to
}

// Bytes returns how many bytes they take.
func (r *EdgeRows) Bytes() int { return 4*len(r.F32) + 2*len(r.BF16) }

// EdgeRowBytes returns how many bytes the features of an edge take.
func (t DType) EdgeRowBytes(columns int) int {
	if t == BF16 {
		return 2 * columns
	}
	return 4 * columns
}

// EdgeTensor describes the array of the features of edges.
func (t DType) EdgeTensor(edges int64, columns int) safetensors.Tensor {
	kind := safetensors.F32
	if t == BF16 {
		kind = safetensors.BF16
	}
	return safetensors.Tensor{Name: EdgeFeatures, DType: kind, Shape: []int64{edges, int64(columns)}}
}

// EdgeFeatures is what the array is called in a shard, and the number of its columns in the
// metadata.
const EdgeFeatures = "edge_features"

// parts returns the bytes of the features, in place.
func (r *EdgeRows) parts() []byte {
	if r.BF16 != nil {
		return raw(r.BF16)
	}
	return raw(r.F32)
}

// loadEdgeColumns reads how many columns there are.
func loadEdgeColumns(s *Shard, text string) error {
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxEdgeFeatures {
		return fmt.Errorf("its metadata has %.20q for %s, which is no number from 1 to %d", text, EdgeFeatures, MaxEdgeFeatures)
	}
	s.EdgeRows.Columns = n
	return nil
}

// loadEdgeRows reads the features of the edges, whose number is known.
func loadEdgeRows(s *Shard) (err error) {
	r := &s.EdgeRows
	switch {
	case r.Columns == 0:
		return nil
	case s.DType == BF16:
		r.BF16, err = view[uint16](s, EdgeFeatures, len(s.Indices), r.Columns)
	default:
		r.F32, err = view[float32](s, EdgeFeatures, len(s.Indices), r.Columns)
	}
	return err
}
