package partition

import (
	"slices"
	"testing"
)

// testGraphs are of the kinds that coarsen differently.
func testGraphs() map[string]*Graph {
	return map[string]*Graph{
		"grid":    gridGraph(40),
		"uniform": uniformGraph(2000, 12000, 1),
		"skewed":  skewedGraph(12, 40000, 2),
		"stars":   starsGraph(50, 40),
		"cliques": cliquesGraph(60, 12),
		"hubs":    hubsGraph(17000), // more edges than a tally holds
	}
}

// hubsGraph has three vertices with edges to all the others, which have no other edges.
func hubsGraph(others int) *Graph {
	var pairs [][2]uint32
	for v := range uint32(others) {
		for hub := range uint32(3) {
			pairs = append(pairs, [2]uint32{hub, 3 + v})
		}
	}
	return joined(3+others, pairs)
}

func TestCoarseGraphsAreImages(t *testing.T) {
	for name, g := range testGraphs() {
		h := newHierarchy(newCrew(t.Context(), 3), g)
		limit := clusterLimit(g, 8)
		h.coarsen(50, limit, 1)
		if len(h.levels) < 2 {
			t.Errorf("%s: not coarsened", name)
		}
		for i := range len(h.levels) - 1 {
			fine, coarse, label := &h.levels[i].graph, &h.levels[i+1].graph, h.levels[i].label
			if err := coarse.check(); err != nil {
				t.Fatalf("%s, level %d: %v", name, i+1, err)
			}
			if !slices.Equal(fine.totals(), coarse.totals()) {
				t.Errorf("%s, level %d: weights %v have become %v", name, i+1, fine.totals(), coarse.totals())
			}
			heaviest := slices.Clone(limit)
			for v, w := range g.Weights {
				heaviest[v%3] = max(heaviest[v%3], int64(w))
			}
			for v, w := range coarse.Weights {
				if int64(w) > heaviest[v%3] {
					t.Fatalf("%s, level %d: a vertex weighs %d, at most %d are allowed", name, i+1, w, heaviest[v%3])
				}
			}
			// A partition of the coarse graph cuts the same in the fine one.
			group := func(v int) int { return int(randomMix(3, uint64(v)) % 5) }
			was, is := cutOf(fine, func(v int) int { return group(int(label[v])) }), cutOf(coarse, group)
			if was != is {
				t.Errorf("%s, level %d: cut %d has become %d", name, i+1, was, is)
			}
			noLoopsNoTwins(t, coarse)
		}
	}
}

func noLoopsNoTwins(t *testing.T, g *Graph) {
	t.Helper()
	for v := range g.vertices() {
		others := slices.Clone(g.Indices[g.Indptr[v]:g.Indptr[v+1]])
		slices.Sort(others)
		if len(slices.Compact(others)) != int(g.degree(uint32(v))) {
			t.Fatalf("vertex %d has two edges to another", v)
		}
	}
}

func TestStarsAndIsolatedVerticesCoarsen(t *testing.T) {
	for name, g := range map[string]*Graph{"stars": starsGraph(4, 1000), "no edges": joined(4000, nil)} {
		h := newHierarchy(newCrew(t.Context(), 1), g)
		h.coarsen(300, []int64{20, 40, 20}, 1)
		if n := h.levels[len(h.levels)-1].graph.vertices(); n > 450 {
			t.Errorf("%s: %d vertices are left", name, n)
		}
	}
}

func TestLevelsAreLeftOutForRoom(t *testing.T) {
	g := uniformGraph(3000, 30000, 1)
	h := newHierarchy(newCrew(t.Context(), 1), g)
	rooms := 0
	for size := int64(2); h.levels[len(h.levels)-1].graph.vertices() > 40; size = size*5/4 + 1 {
		last := &h.levels[len(h.levels)-1].graph
		clusters := h.clusterer.cluster(last, []int64{size, 1 << 40, 1 << 40}, uint64(size))
		if !h.room(clusters) {
			rooms++
		}
		if !h.add(clusters) {
			t.Fatal("no room for another level")
		}
	}
	if rooms == 0 {
		t.Fatal("there was always room: nothing is tested")
	}
	coarsest := &h.levels[len(h.levels)-1].graph
	at := make([]int, g.vertices())
	for v := range at {
		at[v] = v
	}
	for _, l := range h.levels[:len(h.levels)-1] {
		for v := range at {
			at[v] = int(l.label[at[v]])
		}
	}
	was, is := cutOf(g, func(v int) int { return at[v] % 3 }), cutOf(coarsest, func(v int) int { return v % 3 })
	if was != is || !slices.Equal(g.totals(), coarsest.totals()) {
		t.Errorf("cut %d has become %d, weights %v %v", was, is, g.totals(), coarsest.totals())
	}
}

func TestTallySums(t *testing.T) {
	tally := newTally(5000)
	for round := range uint64(50) {
		n := int(randomMix(1, round) % 3000)
		tally.expect(n)
		sums := map[uint32]uint32{}
		var order []uint32
		for i := range n {
			key, weight := uint32(randomMix(round, uint64(i))%5000), uint32(i)
			if _, ok := sums[key]; !ok {
				order = append(order, key)
			}
			sums[key] += weight
			tally.add(key, weight)
		}
		if !slices.Equal(tally.keys, order) {
			t.Fatal("keys are not in the order in which they came")
		}
		for i, key := range tally.keys {
			if tally.sums[i] != sums[key] {
				t.Fatalf("key %d sums to %d, not %d", key, tally.sums[i], sums[key])
			}
		}
		tally.reset()
	}
	for _, s := range tally.slot {
		if s != 0 {
			t.Fatal("a slot was left")
		}
	}
}

func TestSumsEndWhereTheirBitsDo(t *testing.T) {
	if s := saturate(1<<32-2, 5); s != 1<<32-1 {
		t.Errorf("the sum is %d", s)
	}
}

func TestThinKeepsWhatBinds(t *testing.T) {
	// Cliques of heavy edges with light ones between them.
	g, groupOf := communityGraph(10, 30, 12, 12, 1)
	g.EdgeWeights = make([]uint32, len(g.Indices))
	inside := 0
	for v := range g.vertices() {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			g.EdgeWeights[e] = 1
			if groupOf(v) == groupOf(int(g.Indices[e])) {
				g.EdgeWeights[e] = 20
				inside++
			}
		}
	}
	thinned := thin(g, inside+inside/10)
	if err := thinned.check(); err != nil {
		t.Fatal(err)
	}
	if len(thinned.Indices) > inside+inside/10 || len(thinned.Indices) < inside/2 {
		t.Errorf("%d edges are left", len(thinned.Indices))
	}
	if cut := cutOf(thinned, groupOf); cut > int64(inside/10) {
		t.Errorf("%d of the light edges are left", cut)
	}
}
