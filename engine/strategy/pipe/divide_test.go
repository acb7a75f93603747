package pipe

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategy"
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

// Where some shards have most of the edges, ways still cost about the same, and not where
// shards are only counted: within the largest shard of what is best.
func TestWaysAreBalancedByEdges(t *testing.T) {
	const shards, ways = 32, 4
	r := rand.New(rand.NewPCG(2, 2))
	sizes := slices.Repeat([]int{6}, shards)
	// Edges end in the first quarter nine times out of ten.
	w := newWorld(t, 1, sizes, func(_, to int) bool { return to < shards/4 || r.IntN(10) == 0 })
	f := w.facts(t, deep("gcn", 3), ways, strategy.PipeSettings{})
	f.Settings.Strategy = strategy.Graph
	shape, err := f.shape(ways)
	if err != nil {
		t.Fatal(err)
	}
	costs := f.shards()
	dearest, largest := func(s *Shape) (most uint64) {
		for way := range ways {
			_, _, first, end := s.Of(way)
			n := uint64(0)
			for _, c := range costs[first:end] {
				n += c
			}
			most = max(most, n)
		}
		return most
	}, slices.Max(costs)
	all := uint64(0)
	for _, c := range costs {
		all += c
	}
	counted, err := NewShape(w.firsts, nil, ways, ways)
	if err != nil {
		t.Fatal(err)
	}
	if got := dearest(shape); got > all/ways+largest {
		t.Errorf("the dearest way costs %d of %d, shards %d at most", got, all, largest)
	}
	if got, plain := float64(dearest(shape)), float64(dearest(counted)); got > 0.8*plain {
		t.Errorf("the dearest way costs %g, and %g where shards are counted: the graph shows nothing", got, plain)
	}
}
