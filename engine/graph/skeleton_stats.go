package graph

import "slices"

// FeatureStats are what normalising asks of the features of a shard.
type FeatureStats struct {
	Sparse  bool  // rows are stored as sparse ones
	Ones    bool  // all that is not 0 is 1; and all that is stored, if rows are sparse
	Entries int64 // that are not 0; not counted beyond the first that is no 1, unless rows are sparse
}

// StatsOf looks at the features of a shard that is held here.
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

// oneBF16 are the bits of 1.
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
