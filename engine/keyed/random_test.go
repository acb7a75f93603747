package keyed_test

import (
	"fmt"
	"math"
	"math/bits"
	"testing"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// Seeds are fixed, so these either pass always or never. What they bound would go
// wrong by chance once in some ten thousand seeds.
const deviations = 4

// uniform tests that counts are those of equally likely cells, by chi-square, whose
// mean is cells-1 and variance twice that.
func uniform(t *testing.T, what string, counts []int) {
	t.Helper()
	total := 0
	for _, n := range counts {
		total += n
	}
	want, chi := float64(total)/float64(len(counts)), 0.0
	for _, n := range counts {
		chi += (float64(n) - want) * (float64(n) - want) / want
	}
	free := float64(len(counts) - 1)
	if off := (chi - free) / math.Sqrt(2*free); math.Abs(off) > deviations {
		t.Errorf("%s: chi-square is %.1f with %d cells", what, chi, len(counts))
	}
}

// neighbours are keys that differ in one field and by little.
var neighbours = map[string]func(i uint64) keyed.Key{
	"vertices":      func(i uint64) keyed.Key { return keyed.New(1, keyed.Neighbor).With(3).With(5).With(i) },
	"hops":          func(i uint64) keyed.Key { return keyed.New(1, keyed.Neighbor).With(3).With(i).With(5) },
	"steps":         func(i uint64) keyed.Key { return keyed.New(1, keyed.Neighbor).With(i).With(3).With(5) },
	"seeds":         func(i uint64) keyed.Key { return keyed.New(i, keyed.Neighbor).With(3).With(5) },
	"high bits":     func(i uint64) keyed.Key { return keyed.New(1, keyed.Neighbor).With(i << 40) },
	"even vertices": func(i uint64) keyed.Key { return keyed.New(1, keyed.Neighbor).With(2 * i) },
}

const many = 100_000

// The first, the second and the tenth draw of neighbouring keys are uniform, and so
// are pairs of them.
func TestNeighbouringKeysDrawUniformly(t *testing.T) {
	for name, key := range neighbours {
		t.Run(name, func(t *testing.T) {
			for _, n := range []uint64{2, 7, 10, 64, 1000} {
				for _, draw := range []int{1, 2, 10} {
					counts := make([]int, n)
					for i := range uint64(many) {
						s := key(i).Draws()
						for range draw - 1 {
							s.Next()
						}
						counts[s.Below(n)]++
					}
					uniform(t, fmt.Sprintf("draw %d below %d", draw, n), counts)
				}
			}
			across, along := make([]int, 100), make([]int, 100)
			for i := range uint64(many) {
				s, next := key(2*i).Draws(), key(2*i+1).Draws()
				first := s.Below(10)
				across[first*10+next.Below(10)]++
				along[first*10+s.Below(10)]++
			}
			uniform(t, "first draws of two keys", across)
			uniform(t, "two draws of a key", along)
		})
	}
}

func TestFloat64IsUniform(t *testing.T) {
	counts, s := make([]int, 256), keyed.New(3, keyed.Initial).Draws()
	for range many {
		x := s.Float64()
		if x < 0 || x >= 1 {
			t.Fatalf("%v is not in [0, 1)", x)
		}
		counts[int(x*256)]++
	}
	uniform(t, "256ths", counts)
}

// One bit of a field changes half of the key's bits, wherever it is.
func TestWithSpreadsEachBit(t *testing.T) {
	for bit := range 64 {
		changed := 0
		const times = 1000
		for i := range uint64(times) {
			k := keyed.New(i, keyed.Order)
			changed += bits.OnesCount64(uint64(k.With(i) ^ k.With(i^1<<bit)))
		}
		mean, deviation := float64(changed)/times, math.Sqrt(64.0/4/times)
		if math.Abs(mean-32) > deviations*deviation {
			t.Errorf("bit %d changes %.2f bits", bit, mean)
		}
	}
}

// mask says what is dropped: 0 or 1.
func mask(k keyed.Key, vertex uint64, column uint32, threshold uint32) int {
	if k.With(vertex).Column(column) < threshold {
		return 1
	}
	return 0
}

// What is dropped is a share p of all, and as independent from column to column,
// row to row and key to key as coins are.
func TestDropoutIsIndependent(t *testing.T) {
	const rows, cols = 1000, 256
	for _, p := range []float64{.1, .5, .9} {
		threshold := keyed.Threshold(p)
		key := func(step int) keyed.Key { return keyed.New(5, keyed.Dropout).With(2).With(uint64(step)) }
		total, byRow, byColumn := 0, make([]int, rows), make([]int, cols)
		both := map[string]int{}
		for v := range uint64(rows) {
			for c := range uint32(cols) {
				x := mask(key(1), v, c, threshold)
				total += x
				byRow[v] += x
				byColumn[c] += x
				both["the next column"] += x * mask(key(1), v, c+1, threshold)
				both["the column after"] += x * mask(key(1), v, c+2, threshold)
				both["the column 16 on"] += x * mask(key(1), v, c+16, threshold)
				both["the next row"] += x * mask(key(1), v+1, c, threshold)
				both["the next row and column"] += x * mask(key(1), v+1, c+1, threshold)
				both["the next step"] += x * mask(key(2), v, c, threshold)
			}
		}
		n := float64(rows * cols)
		near := func(what string, got int, share float64) {
			t.Helper()
			if off := (float64(got) - n*share) / math.Sqrt(n*share*(1-share)); math.Abs(off) > deviations {
				t.Errorf("p=%v: %s: %d of %.0f, want a share of %.4f", p, what, got, n, share)
			}
		}
		near("dropped", total, p)
		for what, got := range both {
			near("dropped as well as "+what, got, p*p)
		}
		spread := func(what string, counts []int, each float64) {
			t.Helper()
			chi := 0.0
			for _, c := range counts {
				chi += (float64(c) - each*p) * (float64(c) - each*p) / (each * p * (1 - p))
			}
			free := float64(len(counts))
			if off := (chi - free) / math.Sqrt(2*free); math.Abs(off) > deviations {
				t.Errorf("p=%v: counts by %s spread by %.3f of what they should", p, what, chi/free)
			}
		}
		spread("row", byRow, cols)
		spread("column", byColumn, rows)
	}
}
