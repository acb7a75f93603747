package graph

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
)

// ReadSkeleton decodes what Parts returned, and checks everything that a shard's readers
// rely on. The skeleton aliases b.
func ReadSkeleton(b []byte) (*Skeleton, error) {
	file, err := safetensors.Parse("the skeleton", b)
	if err != nil {
		return nil, fmt.Errorf("read a shard's skeleton: %w", err)
	}
	k := &Skeleton{Shard: &Shard{file: file}}
	if err := k.load(); err != nil {
		return nil, fmt.Errorf("a shard's skeleton is not usable: %w", err)
	}
	return k, nil
}

func (k *Skeleton) load() error {
	s := k.Shard
	if err := s.loadMetadata(SkeletonFormat); err != nil {
		return err
	}
	if err := s.loadLabels(); err != nil {
		return err
	}
	if err := k.loadStats(); err != nil {
		return err
	}
	if s.file.Has("indptr") {
		if err := s.loadEdges(); err != nil {
			return err
		}
		if k.Edges != int64(len(s.Indices)) {
			return fmt.Errorf("its metadata tells of %d edges, and it has %d", k.Edges, len(s.Indices))
		}
	}
	return k.loadSummary()
}

func (k *Skeleton) loadStats() (err error) {
	s := k.Shard
	meta := s.file.Metadata()
	for _, field := range []struct {
		name string
		to   *int64
		max  int64
	}{
		{"edges", &k.Edges, int64(s.Vertices) * int64(s.Total)},
		{"entries", &k.Stats.Entries, int64(s.Vertices) * int64(s.Features)},
	} {
		n, err := strconv.ParseInt(meta[field.name], 10, 64)
		if err != nil || n < 0 || n > field.max {
			return fmt.Errorf("its metadata has %q for %s, which is no number from 0 to %d", meta[field.name], field.name, field.max)
		}
		*field.to = n
	}
	for name, to := range map[string]*bool{"sparse": &k.Stats.Sparse, "ones": &k.Stats.Ones} {
		if *to, err = strconv.ParseBool(meta[name]); err != nil {
			return fmt.Errorf("its metadata has %q for %s, which is neither true nor false", meta[name], name)
		}
	}
	return nil
}

func (k *Skeleton) loadSummary() (err error) {
	s := k.Shard
	if s.file.Has("inverse") {
		if k.Inverse, err = view[float32](s, "inverse", s.Vertices); err != nil {
			return err
		}
		for row, f := range k.Inverse {
			if !(f >= 0 && f <= math.MaxFloat32) {
				return fmt.Errorf("tensor %q has %v in row %d", "inverse", f, row)
			}
		}
	}
	if !s.file.Has("loops") {
		return nil
	}
	words, err := view[int64](s, "loops", (s.Vertices+63)/64)
	if err != nil {
		return err
	}
	k.Loops = make([]uint64, len(words))
	for i, w := range words {
		k.Loops[i] = uint64(w)
	}
	if rest := s.Vertices % 64; rest != 0 && k.Loops[len(words)-1]>>rest != 0 {
		return errors.New(`tensor "loops" has bits beyond the last vertex`)
	}
	return nil
}
