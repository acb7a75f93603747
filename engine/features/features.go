// Package features serves the input rows of vertices from their shards, normalised
// as asked for, dense or sparse.
package features

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Hows are the ways to normalise rows: auto is row where features are under 5 %
// dense and all ones, else none; row divides by the sum of the absolute values;
// binary makes 1 of all that is not 0; binary-row does both.
var Hows = []string{"auto", "row", "none", "binary", "binary-row"}

// A Store is the features of all vertices of a graph. Many goroutines may use it.
type Store struct {
	shards  []*graph.Shard
	firsts  []uint32 // of the shards
	columns int
	sparse  bool
	how     string
	binary  bool
	// ones says that all entries of sparse rows are 1 before rows are scaled.
	ones bool
	// scale is what each vertex' row is multiplied by, nil: nothing is.
	scale []float32
	parts []tensor.Part // of the dense features
	rates []tensor.Part // of scale
}

// Open checks that the shards are all of one graph, in order. What is asked for and
// is no row of the shards as it stands costs memory: a number a vertex for row, two
// bytes an element for binary rows of dense features.
func Open(shards []*graph.Shard, how string) (*Store, error) {
	if err := check(shards, how); err != nil {
		return nil, err
	}
	s := &Store{shards: shards, columns: shards[0].Features, sparse: shards[0].Sparse != nil, how: how}
	for _, shard := range shards {
		s.firsts = append(s.firsts, shard.First)
	}
	if how == "auto" || s.sparse {
		ones, density := s.look()
		s.ones = s.sparse && ones
		if how == "auto" {
			s.how = "none"
			if ones && density < 0.05 {
				s.how = "row"
			}
		}
	}
	s.binary = s.how == "binary" || s.how == "binary-row"
	s.ones = s.ones || s.sparse && s.binary
	if !s.sparse {
		s.lay()
	}
	if s.how == "row" || s.how == "binary-row" {
		s.weigh()
	}
	return s, nil
}

func check(shards []*graph.Shard, how string) error {
	if !slices.Contains(Hows, how) {
		return fmt.Errorf("features can't be normalised as %q: it is one of %v", how, Hows)
	}
	if len(shards) == 0 {
		return errors.New("there are no shards to read features from")
	}
	next := uint64(0)
	for i, shard := range shards {
		if shard.Number != i || shard.Shards != len(shards) || uint64(shard.First) != next || shard.Features != shards[0].Features ||
			(shard.Sparse == nil) != (shards[0].Sparse == nil) {
			return fmt.Errorf("shard %d does not follow the one before it: these are not the shards of one graph, in order", i)
		}
		next += uint64(shard.Vertices)
	}
	if next != uint64(shards[0].Total) {
		return fmt.Errorf("the shards hold %d vertices of %d: some are missing", next, shards[0].Total)
	}
	if shards[0].Features == 0 {
		return errors.New("the graph has no features: import it with some, or give each vertex a constant one")
	}
	return nil
}

// look says whether all entries are ones, and how dense they are. It stops where
// the first is known to be false.
func (s *Store) look() (ones bool, density float64) {
	entries := 0
	for _, shard := range s.shards {
		switch {
		case s.sparse && shard.Sparse.Values != nil:
			for _, f := range shard.Sparse.Values {
				if f != 1 {
					return false, 0
				}
			}
			entries += len(shard.Sparse.Columns)
		case s.sparse:
			for _, f := range shard.Sparse.ValuesBF16 {
				if f != oneBF16 {
					return false, 0
				}
			}
			entries += len(shard.Sparse.Columns)
		default:
			for row := range shard.Vertices {
				for column := range s.columns {
					f := dense(shard, row*s.columns+column)
					if f != 0 && f != 1 {
						return false, 0
					}
					if f != 0 {
						entries++
					}
				}
			}
		}
	}
	total := float64(s.shards[0].Total) * float64(s.columns)
	return true, float64(entries) / max(total, 1)
}

const oneBF16 = 0x3f80

func dense(shard *graph.Shard, i int) float32 {
	if shard.Dense != nil {
		return shard.Dense[i]
	}
	return fromBF16(shard.DenseBF16[i])
}

func fromBF16(f uint16) float32 { return math.Float32frombits(uint32(f) << 16) }

// lay sets parts: views of the shards, or a copy that is binary.
func (s *Store) lay() {
	for _, shard := range s.shards {
		part := tensor.Part{First: shard.First}
		switch {
		case s.binary:
			rows := make([]uint16, shard.Vertices*s.columns)
			for i := range rows {
				if dense(shard, i) != 0 {
					rows[i] = oneBF16
				}
			}
			part.X = tensor.OverBF16(shard.Vertices, s.columns, rows)
		case shard.Dense != nil:
			part.X = tensor.OverF32(shard.Vertices, s.columns, shard.Dense)
		default:
			part.X = tensor.OverBF16(shard.Vertices, s.columns, shard.DenseBF16)
		}
		s.parts = append(s.parts, part)
	}
}

// weigh sets scale. A row of zeros keeps them.
func (s *Store) weigh() {
	s.scale = make([]float32, s.shards[0].Total)
	for _, shard := range s.shards {
		scale := s.scale[shard.First:][:shard.Vertices]
		for row := range scale {
			scale[row] = 1
			if sum := s.sum(shard, row); sum > 0 {
				scale[row] = float32(1 / sum)
			}
		}
		s.rates = append(s.rates, tensor.Part{First: shard.First, X: tensor.OverF32(shard.Vertices, 1, scale)})
	}
}

// sum is that of the absolute values of a row, as it is before it is scaled.
func (s *Store) sum(shard *graph.Shard, row int) float64 {
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

// How is how the rows are normalised; it is never auto.
func (s *Store) How() string { return s.how }

// Columns counts the features.
func (s *Store) Columns() int { return s.columns }

// Sparse says whether rows are given as a CSR.
func (s *Store) Sparse() bool { return s.sparse }

// Bytes is what the store holds of its own, beside the shards.
func (s *Store) Bytes() uint64 {
	n := 4 * uint64(len(s.scale))
	if s.binary && !s.sparse {
		n += 2 * uint64(s.shards[0].Total) * uint64(s.columns)
	}
	return n
}

// Dense fills y with the rows of these vertices, by the device's Gather. a is for
// what it needs meanwhile.
func (s *Store) Dense(d tensor.Device, a tensor.Arena, y tensor.Matrix, vertices []uint32) {
	d.Gather(y, s.parts, vertices)
	if s.scale != nil {
		scale := a.Alloc(d.Type(), len(vertices), 1)
		d.Gather(scale, s.rates, vertices)
		d.ScaleRows(y, y, scale)
	}
}
