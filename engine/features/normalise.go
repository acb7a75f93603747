package features

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// sum reports whether every non-zero of all shards' features is 1, and if so their
// density.
func (s *Store) sum(stats []graph.FeatureStats) (ones bool, density float64) {
	entries := int64(0)
	for _, shard := range stats {
		if !shard.Ones {
			return false, 0
		}
		entries += shard.Entries
	}
	return true, float64(entries) / max(float64(s.total)*float64(s.columns), 1)
}

const oneBF16 = 0x3f80

func dense(shard *graph.Shard, i int) float32 {
	if shard.Dense != nil {
		return shard.Dense[i]
	}
	return fromBF16(shard.DenseBF16[i])
}

func fromBF16(f uint16) float32 { return math.Float32frombits(uint32(f) << 16) }

// stored is the unscaled dense rows of a shard: views, or a binary copy. One field is
// set, or neither if the rows are not here.
type stored struct {
	whole []float32
	half  []uint16
}

// lay sets stored and parts.
func (s *Store) lay() {
	s.stored = make([]stored, len(s.shards))
	for i, shard := range s.shards {
		if !holds(shard) {
			continue
		}
		x := stored{shard.Dense, shard.DenseBF16}
		if s.binary {
			x = stored{half: make([]uint16, shard.Vertices*s.columns)}
			for i := range x.half {
				if dense(shard, i) != 0 {
					x.half[i] = oneBF16
				}
			}
		}
		part := tensor.Part{First: shard.First}
		if x.whole != nil {
			part.X = tensor.OverF32(shard.Vertices, s.columns, x.whole)
		} else {
			part.X = tensor.OverBF16(shard.Vertices, s.columns, x.half)
		}
		s.stored[i], s.parts = x, append(s.parts, part)
	}
}

// weigh sets scale and rates. A row of zeros is not scaled.
func (s *Store) weigh() {
	s.scale = make([][]float32, len(s.shards))
	for i, shard := range s.shards {
		if !holds(shard) {
			continue
		}
		scale := make([]float32, shard.Vertices)
		for row := range scale {
			scale[row] = 1
			if sum := s.weight(shard, row); sum > 0 {
				scale[row] = float32(1 / sum)
			}
		}
		s.scale[i] = scale
		s.rates = append(s.rates, tensor.Part{First: shard.First, X: tensor.OverF32(shard.Vertices, 1, scale)})
	}
}

// weight returns the sum of the absolute values of a row before scaling.
func (s *Store) weight(shard *graph.Shard, row int) float64 {
	if s.sparse && s.ones {
		return float64(shard.Sparse.Indptr[row+1] - shard.Sparse.Indptr[row])
	}
	sum := 0.0
	if s.sparse {
		for i := shard.Sparse.Indptr[row]; i < shard.Sparse.Indptr[row+1]; i++ {
			sum += math.Abs(float64(entry(shard.Sparse, i)))
		}
		return sum
	}
	for i := row * s.columns; i < (row+1)*s.columns; i++ {
		f := dense(shard, i)
		if s.binary && f != 0 {
			f = 1
		}
		sum += math.Abs(float64(f))
	}
	return sum
}

func entry(rows *graph.SparseRows, i int64) float32 {
	if rows.Values != nil {
		return rows.Values[i]
	}
	return fromBF16(rows.ValuesBF16[i])
}
