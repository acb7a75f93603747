package graph

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
)

// load fills the shard from its file. Data that it accepts may be indexed without further
// checks.
func (s *Shard) load() error {
	if err := s.loadMetadata(ShardFormat); err != nil {
		return err
	}
	if err := s.loadEdges(); err != nil {
		return err
	}
	if err := s.loadFeatures(); err != nil {
		return err
	}
	if err := s.loadLabels(); err != nil {
		return err
	}
	return s.loadOriginals()
}

func (s *Shard) loadMetadata(format string) error {
	meta := s.file.Metadata()
	if got := meta["format"]; got != format {
		return fmt.Errorf("its format is %q and not %q", got, format)
	}
	var first, total int
	for _, field := range []struct {
		name string
		to   *int
		max  int
	}{
		{"shards", &s.Shards, MaxShards},
		{"shard", &s.Number, MaxShards - 1},
		{"first_vertex", &first, MaxVertices},
		{"vertices", &s.Vertices, MaxVertices},
		{"total_vertices", &total, MaxVertices},
		{"features", &s.Features, MaxVertices},
		{"classes", &s.Classes, MaxVertices},
	} {
		n, err := strconv.Atoi(meta[field.name])
		if err != nil || n < 0 || n > field.max {
			return fmt.Errorf("its metadata has %q for %s, which is no number from 0 to %d", meta[field.name], field.name, field.max)
		}
		*field.to = n
	}
	if s.Number >= s.Shards || first > total || s.Vertices > total-first {
		return fmt.Errorf("its metadata tells of shard %d of %d, with %d vertices from %d of %d", s.Number, s.Shards, s.Vertices, first, total)
	}
	s.First, s.Total = uint32(first), uint32(total)
	if text := meta["relations"]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > MaxRelations {
			return fmt.Errorf("its metadata has %.20q relations, which is no number from 1 to %d", text, MaxRelations)
		}
		s.Related = &Related{Count: n, Given: meta["triples"] != ""}
		if s.Related.Given && n%tripleKinds != 0 {
			return fmt.Errorf("its metadata has %d relations of triples, which are no %d for each", n, tripleKinds)
		}
		if text := meta["types"]; text != "" && !s.Related.Given { // those of triples say nothing of features
			if s.Related.Types, err = ParseTypes(text, uint64(total), s.Features); err != nil {
				return fmt.Errorf("its metadata: %w", err)
			}
			if of := s.Related.Types.Numbers(); of != n {
				return fmt.Errorf("its metadata has %d relations, and types with %d", n, of)
			}
		}
	}
	if err := loadEdgeColumns(s, meta[EdgeFeatures]); err != nil {
		return err
	}
	s.Targets = Targets(meta["targets"])
	if err := CheckTargets(s.Targets, s.Classes); err != nil {
		return err
	}
	s.DType = DType(meta["dtype"])
	if s.DType != F32 && s.DType != BF16 {
		return fmt.Errorf("its metadata has the unknown dtype %q", s.DType)
	}
	return nil
}

// view returns a tensor, which must have the given shape; a dimension of -1 matches any.
func view[T safetensors.Element](s *Shard, name string, shape ...int) ([]T, error) {
	data, got, err := safetensors.View[T](s.file, name)
	if err != nil {
		return nil, err
	}
	fits := len(got) == len(shape)
	for i := 0; fits && i < len(shape); i++ {
		fits = shape[i] < 0 || got[i] == int64(shape[i])
	}
	if !fits {
		return nil, fmt.Errorf("tensor %q has the shape %v where %v was expected", name, got, shape)
	}
	return data, nil
}

// checkIndptr returns an error unless offsets start at 0, never decrease, and end at n.
func checkIndptr(name string, offsets []int64, n int) error {
	if offsets[0] != 0 || offsets[len(offsets)-1] != int64(n) || !slices.IsSorted(offsets) {
		return fmt.Errorf("tensor %q does not rise from 0 to %d", name, n)
	}
	return nil
}

// checkRows returns an error unless the indices of each row ascend and all are below
// limit.
func checkRows(name string, indptr []int64, indices []int32, limit int64) error {
	for row := range len(indptr) - 1 {
		last := int64(-1)
		for _, i := range indices[indptr[row]:indptr[row+1]] {
			if int64(i) <= last || int64(i) >= limit {
				return fmt.Errorf("tensor %q has %d in row %d, which does not ascend below %d", name, i, row, limit)
			}
			last = int64(i)
		}
	}
	return nil
}

func (s *Shard) loadEdges() (err error) {
	if s.Indptr, err = view[int64](s, "indptr", s.Vertices+1); err != nil {
		return err
	}
	if s.Indices, err = view[int32](s, "indices", -1); err != nil {
		return err
	}
	if err := checkIndptr("indptr", s.Indptr, len(s.Indices)); err != nil {
		return err
	}
	if err := loadEdgeRows(s); err != nil {
		return err
	}
	if s.Related != nil {
		return loadRelations(s)
	}
	if err := checkRows("indices", s.Indptr, s.Indices, int64(s.Total)); err != nil {
		return err
	}
	if s.file.Has("weights") {
		s.Weights, err = view[float32](s, "weights", len(s.Indices))
	}
	return err
}

func (s *Shard) loadFeatures() (err error) {
	switch {
	case s.Features == 0:
		return nil
	case !s.file.Has("features.indptr"):
		if s.DType == BF16 {
			s.DenseBF16, err = view[uint16](s, "features", s.Vertices, s.Features)
		} else {
			s.Dense, err = view[float32](s, "features", s.Vertices, s.Features)
		}
		return err
	}
	rows := &SparseRows{}
	if rows.Indptr, err = view[int64](s, "features.indptr", s.Vertices+1); err != nil {
		return err
	}
	if rows.Columns, err = view[int32](s, "features.indices", -1); err != nil {
		return err
	}
	if err := checkIndptr("features.indptr", rows.Indptr, len(rows.Columns)); err != nil {
		return err
	}
	if err := checkRows("features.indices", rows.Indptr, rows.Columns, int64(s.Features)); err != nil {
		return err
	}
	if s.DType == BF16 {
		rows.ValuesBF16, err = view[uint16](s, "features.values", len(rows.Columns))
	} else {
		rows.Values, err = view[float32](s, "features.values", len(rows.Columns))
	}
	s.Sparse = rows
	return err
}

func (s *Shard) loadLabels() (err error) {
	if s.file.Has("targets") && s.Targets != OneClass {
		if err := s.loadTargets(); err != nil {
			return err
		}
	} else if s.file.Has("labels") {
		if s.Labels, err = view[int32](s, "labels", s.Vertices); err != nil {
			return err
		}
		for row, label := range s.Labels {
			if label < NoLabel || int64(label) >= int64(s.Classes) {
				return fmt.Errorf("row %d has the label %d of %d classes", row, label, s.Classes)
			}
		}
	}
	if !s.file.Has("splits") {
		return nil
	}
	marks, shape, err := safetensors.View[uint8](s.file, "splits")
	if err != nil {
		return err
	}
	if len(shape) != 2 || shape[0] > MaxSplits || shape[1] != int64(s.Vertices) {
		return fmt.Errorf("tensor %q has the shape %v, of at most %d splits of %d vertices", "splits", shape, MaxSplits, s.Vertices)
	}
	for i, mark := range marks {
		if mark > Test {
			return fmt.Errorf("row %d of split %d has the unknown mark %d", i%s.Vertices, i/s.Vertices, mark)
		}
	}
	for range shape[0] {
		s.Marks = append(s.Marks, marks[:s.Vertices:s.Vertices])
		marks = marks[s.Vertices:]
	}
	return nil
}

func (s *Shard) loadOriginals() (err error) {
	o := &s.Originals
	if !s.file.Has("original_ids.offsets") {
		o.Ints, err = view[int64](s, "original_ids", s.Vertices)
		return err
	}
	if o.Offsets, err = view[int64](s, "original_ids.offsets", s.Vertices+1); err != nil {
		return err
	}
	if o.Bytes, err = view[uint8](s, "original_ids.bytes", -1); err != nil {
		return err
	}
	return checkIndptr("original_ids.offsets", o.Offsets, len(o.Bytes))
}
