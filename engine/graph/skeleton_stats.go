package graph

import "slices"

// FeatureStats are the statistics of a shard's features that normalisation needs.
type FeatureStats struct {
	Sparse  bool  // rows are sparse
	Ones    bool  // every non-zero is 1; every stored entry, if rows are sparse
	Entries int64 // non-zeros; if rows are dense, counted only up to the first that is not 1
}

// StatsOf computes the statistics of a local shard's features.
func StatsOf(s *Shard) FeatureStats {
	if s.Sparse != nil {
		ones := allOnes(s.Sparse.Values, 1) && allOnes(s.Sparse.ValuesBF16, oneBF16)
		return FeatureStats{Sparse: true, Ones: ones, Entries: int64(len(s.Sparse.Columns))}
	}
	if s.DenseBF16 != nil {
		const minus0 = 0x8000
		return denseStats(s.DenseBF16, func(f uint16) bool { return f&^minus0 == 0 }, oneBF16)
	}
	return denseStats(s.Dense, func(f float32) bool { return f == 0 }, 1)
}

// oneBF16 is 1 in BF16.
const oneBF16 = 0x3f80

func allOnes[T comparable](values []T, one T) bool {
	return !slices.ContainsFunc(values, func(f T) bool { return f != one })
}

func denseStats[T comparable](values []T, zero func(T) bool, one T) FeatureStats {
	stats := FeatureStats{Ones: true}
	for _, f := range values {
		if zero(f) {
			continue
		}
		if f != one {
			return FeatureStats{Entries: stats.Entries}
		}
		stats.Entries++
	}
	return stats
}
