package stats

import (
	"math"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	v := []float64{9, 1, 5}
	if m := Median(v); m != 5 || v[0] != 9 {
		t.Errorf("median %g of %v", m, v)
	}
	if m := Median([]time.Duration{4, 8}); m != 6 {
		t.Errorf("median %d of two", m)
	}
	for want, of := range map[float64][]float64{2: {3, 1, 2}, 2.5: {4, 1, 3, 2}, 7: {7}} {
		if got := Median(of); got != want {
			t.Errorf("the median of %v is not %v", of, got)
		}
	}
	if m := Median[float64](nil); m != 0 {
		t.Errorf("median %g of none", m)
	}
}

func TestMeans(t *testing.T) {
	if m := Mean([]float64{1, 4}); m != 2.5 {
		t.Errorf("mean %g", m)
	}
	if m := Geometric([]float64{1, 4}); math.Abs(m-2) > 1e-12 {
		t.Errorf("geometric mean %g", m)
	}
	if !math.IsNaN(Geometric(nil)) || Mean(nil) != 0 {
		t.Error("means of nothing")
	}
}

func TestSpread(t *testing.T) {
	if mean, deviation := Spread([]float64{1, 3}); mean != 2 || math.Abs(deviation-math.Sqrt2) > 1e-12 {
		t.Errorf("%v ± %v", mean, deviation)
	}
	if mean, deviation := Spread([]float64{7}); mean != 7 || deviation != 0 {
		t.Errorf("%v ± %v of one", mean, deviation)
	}
}
