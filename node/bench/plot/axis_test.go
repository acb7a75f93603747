package plot

import (
	"math"
	"strings"
	"testing"
)

func labels(a axis) string {
	var all []string
	for _, t := range a.ticks {
		all = append(all, t.label)
	}
	return strings.Join(all, " ")
}

func TestTicksAreRound(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 1, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{0, 10, "0 2 4 6 8 10"},
		{0, 0.3, "0.0 0.1 0.2 0.3"},
		{0, 22630, "0 5000 10000 15000 20000"},
		{-3, 7, "-2 0 2 4 6"},
		{78.93, 82.1, "79 80 81 82"},
		{0, 999999, "0 200000 400000 600000 800000"},
		{0, 5e6, "0 1e6 2e6 3e6 4e6 5e6"},
		{2e6, 3e6, "2e6 2.2e6 2.4e6 2.6e6 2.8e6 3e6"},
		{-1e12, 1e12, "-1e12 -5e11 0 5e11 1e12"},
		{0, 3e-4, "0.0000 0.0001 0.0002 0.0003"},
		{0, 3e-5, "0 1e-5 2e-5 3e-5"},
		{0, 4.9e-324, "-1.0 -0.5 0.0 0.5 1.0"},
		{0, 1e300, "0 2e299 4e299 6e299 8e299 1e300"},
		{1e9, 1e9 + 10, "1e9 1.000000005e9 1.00000001e9"},
	} {
		if got := labels(newAxis(c.low, c.high, 400)); got != c.want {
			t.Errorf("from %g to %g: %s, want %s", c.low, c.high, got, c.want)
		}
	}
}

// Ticks of all ranges lie on the axis, differ, and have labels that do not overlap where
// there is room for two.
func TestTicksOfAllRanges(t *testing.T) {
	values := []float64{0, 5e-324, 1e-300, 1.7e-9, 0.1, 1, 3, 80, 99.99, 1e6 - 1, 7e15, 1e16 + 2, largest}
	for _, x := range values {
		for _, y := range values {
			for _, high := range []float64{y, -y, math.Nextafter(x, math.Inf(1))} {
				low, high := math.Min(x, high), math.Max(x, high)
				a := newAxis(low, high, 200)
				if a.low > low || a.high < high || !(a.high-a.low > 0) || math.IsInf(a.high-a.low, 0) {
					t.Fatalf("from %g to %g: the axis is from %g to %g", low, high, a.low, a.high)
				}
				if len(a.ticks) < 2 || len(a.ticks) > mostSteps+1 {
					t.Fatalf("from %g to %g: ticks %s", low, high, labels(a))
				}
				for i, k := range a.ticks {
					if part := a.part(k.value); part < -1e-6 || part > 1+1e-6 {
						t.Errorf("from %g to %g: %s is off the axis", low, high, k.label)
					}
					if i == 0 {
						continue
					}
					between := (k.value - a.ticks[i-1].value) / (a.high - a.low) * 200
					if k.label == a.ticks[i-1].label || len(a.ticks) > 2 && between < width(k.label, tickSize) {
						t.Errorf("from %g to %g: ticks %s", low, high, labels(a))
					}
				}
			}
		}
	}
}
