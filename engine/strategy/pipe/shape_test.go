package pipe

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
)

// Where some shards have most of the edges, ways still cost about the same, and not where
// shards are only counted: within the largest shard of what is best.
func TestWaysAreBalancedByEdges(t *testing.T) {
	const shards, ways = 32, 4
	r := rand.New(rand.NewPCG(2, 2))
	sizes := slices.Repeat([]int{6}, shards)
	// Edges end in the first quarter nine times out of ten.
	w := newWorld(t, 1, sizes, func(_, to int) bool { return to < shards/4 || r.IntN(10) == 0 })
	f := w.facts(t, deep("gcn", 3), ways)
	f.Settings.Graph = true
	shape, err := f.shape(ways)
	if err != nil {
		t.Fatal(err)
	}
	costs := arrange.ShardCosts(f.Model.Stages(), f.Layout.Firsts, f.Census.Edges)
	dearest, largest := func(s *arrange.Shape) (most uint64) {
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
	counted, err := arrange.NewShape(w.firsts, nil, ways, ways)
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
