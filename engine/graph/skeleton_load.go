package graph

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

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
	return k.loadSeeds()
}

// loadSeeds reads what is said of labels and marks that are left out.
func (k *Skeleton) loadSeeds() (err error) {
	s := k.Shard
	if !s.file.Has("training") && !s.file.Has("gaps") {
		return nil
	}
	if s.Labels != nil || s.Marks != nil {
		return errors.New("it has labels or marks, and seeds in place of them")
	}
	k.Seeds = &Seeds{Splits: []SplitInfo{}}
	if err = k.Seeds.Training.load(s); err != nil {
		return err
	}
	counts := s.file.Metadata()["seeds"]
	if counts == "" {
		return nil
	}
	all := strings.Split(counts, ";")
	if len(all) > MaxSplits {
		return fmt.Errorf("its metadata has %d splits, and a graph at most %d", len(all), MaxSplits)
	}
	for _, one := range all {
		var n [3]uint64
		numbers, sum := strings.Split(one, ","), uint64(0)
		for i := range n {
			if len(numbers) != len(n) {
				return fmt.Errorf("its metadata has %q for a split's counts", one)
			}
			if n[i], err = strconv.ParseUint(numbers[i], 10, 32); err != nil {
				return fmt.Errorf("its metadata has %q for a split's counts", one)
			}
			sum += n[i]
		}
		if sum > uint64(s.Vertices) {
			return fmt.Errorf("its metadata has %q for a split's counts of %d vertices", one, s.Vertices)
		}
		k.Seeds.Splits = append(k.Seeds.Splits, SplitInfo{Train: n[0], Val: n[1], Test: n[2]})
	}
	return nil
}

// mostEdges returns how many edges a shard can have: a source occurs once in a row, or once for
// each relation.
func mostEdges(s *Shard) int64 {
	each := int64(s.Total)
	if s.Related != nil {
		each *= int64(s.Related.Count)
	}
	return int64(s.Vertices) * min(each, math.MaxInt64/max(1, int64(s.Vertices)))
}

func (k *Skeleton) loadStats() (err error) {
	s := k.Shard
	meta := s.file.Metadata()
	for _, field := range []struct {
		name string
		to   *int64
		max  int64
	}{
		{"edges", &k.Edges, mostEdges(s)},
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
