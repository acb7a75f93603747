// Package stats summarises small samples of measurements: medians, means and deviations.
// Benchmarks and the scripts that compare runs share it. It is not for statistics on
// graphs, features or models.
package stats

import (
	"math"
	"slices"
	"time"
)

// Median returns the median of a sample, 0 if it is empty. It does not modify the sample.
func Median[T float64 | time.Duration](sample []T) T {
	if len(sample) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(sample))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Mean returns the arithmetic mean of a sample, or 0 if it is empty.
func Mean(sample []float64) float64 {
	mean, _ := Spread(sample)
	return mean
}

// Geometric returns the geometric mean of a sample of positive numbers, such as ratios.
// It is NaN if the sample is empty.
func Geometric(sample []float64) float64 {
	sum := 0.0
	for _, x := range sample {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(sample)))
}

// Spread returns the mean and the standard deviation of a sample, with n-1 degrees of
// freedom. Both are 0 if it is empty.
func Spread(sample []float64) (mean, deviation float64) {
	if len(sample) == 0 {
		return 0, 0
	}
	for _, x := range sample {
		mean += x / float64(len(sample))
	}
	for _, x := range sample {
		deviation += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(deviation / max(float64(len(sample)-1), 1))
}
