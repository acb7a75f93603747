package arrange

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The dearest run is as cheap as that of any division, none is empty, and where things cost
// the same runs are even.
func TestDivisions(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 9))
	for range 300 {
		costs := make([]uint64, 1+r.IntN(9))
		plain := make([]float64, len(costs))
		for i := range costs {
			costs[i] = uint64(r.IntN(9))
			plain[i] = float64(costs[i])
		}
		runs := 1 + r.IntN(len(costs))
		firsts := divide(costs, runs)
		if len(firsts) != runs+1 || firsts[0] != 0 || firsts[runs] != len(costs) {
			t.Fatalf("%v in %d runs: %v", costs, runs, firsts)
		}
		worst := 0.0
		for i := range runs {
			if firsts[i+1] <= firsts[i] {
				t.Fatalf("%v in %d runs: %v has an empty one", costs, runs, firsts)
			}
			worst = max(worst, sum(plain[firsts[i]:firsts[i+1]]))
		}
		if best := least(plain, runs); worst != best {
			t.Errorf("%v in %d runs: the dearest of %v costs %v, and %v would do", costs, runs, firsts, worst, best)
		}
	}
	for things := 1; things < 40; things++ {
		for runs := 1; runs <= things; runs++ {
			firsts := divide(slices.Repeat([]uint64{7}, things), runs)
			for i := range runs {
				if n := firsts[i+1] - firsts[i]; n > (things+runs-1)/runs {
					t.Errorf("%d alike in %d runs: %v", things, runs, firsts)
				}
			}
		}
	}
}
