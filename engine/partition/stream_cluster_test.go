package partition

import (
	"slices"
	"testing"
)

// Each of the stages must bring something.
func TestEachPassImproves(t *testing.T) {
	h := streamMake(t, streamArxiv)
	o := Options{Parts: 16, Tolerance: streamTolerance}
	s, err := newStreamer(t.Context(), h, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.pack(); err != nil {
		t.Fatal(err)
	}
	packed := streamCut(h, s.label)
	if err := s.refine(); err != nil {
		t.Fatal(err)
	}
	refined := streamCut(h, s.label)
	whole := streamCut(h, multilevel(t, &h.Graph, o))
	t.Logf("packed %.4f, refined %.4f, multilevel %.4f", packed, refined, whole)
	if packed > 0.5 || refined > packed-0.001 || refined > 1.3*whole {
		t.Errorf("cut %.4f packed, %.4f refined, %.4f by the multilevel method", packed, refined, whole)
	}
}

// Clusters keep their bounds, and where there may be only few, the heaviest stay.
func TestClusters(t *testing.T) {
	h := streamMake(t, streamArxiv)
	s, err := newStreamer(t.Context(), h, Options{Parts: 16, Tolerance: streamTolerance})
	if err != nil {
		t.Fatal(err)
	}
	c := newStreamClusters(s)
	if err := c.grow(); err != nil {
		t.Fatal(err)
	}
	weight := map[uint32]uint64{}
	for v, l := range c.of {
		share := max(1/float64(s.n), float64(h.degree(uint32(v)))/float64(h.HalfEdges()))
		weight[l] += uint64(uint32(share * streamUnits))
	}
	for l, w := range c.weight {
		if got := weight[uint32(l)]; got != uint64(w) {
			t.Fatalf("cluster %d weighs %d, noted as %d", l, got, w)
		}
		// One that was joined before its own first vertex came may be heavier by that.
		if w > c.limit+c.limit/2 {
			t.Errorf("cluster %d weighs %d, the limit is %d", l, w, c.limit)
		}
	}
	if len(weight) > int(s.n)/2 {
		t.Fatalf("%d clusters of %d vertices", len(weight), s.n)
	}
	named := slices.Clone(c.of)
	c.number(100)
	if c.count > 100 || c.count < 50 {
		t.Fatalf("%d clusters are left, of at most 100", c.count)
	}
	least, most := uint64(1<<62), uint64(0) // of those that stay, of those that go
	for v, l := range c.of {
		if l == none {
			most = max(most, weight[named[v]])
		} else {
			least = min(least, weight[named[v]])
		}
	}
	if most >= least {
		t.Errorf("a cluster of weight %d went, one of %d stayed", most, least)
	}
}

// What the table cannot hold is the weakest.
func TestPairsKeepTheStrongest(t *testing.T) {
	p := newStreamPairs(64)
	for i := range uint32(20_000) {
		p.add(i%8, 8+i%8)
		p.add(uint32(randomMix(1, uint64(i)))%1000, 1000+uint32(randomMix(2, uint64(i)))%1000)
	}
	g := p.graph(2000, 1)
	if len(g.Indices) > 128 {
		t.Fatalf("%d ends of edges in 64 slots", len(g.Indices))
	}
	for a := range uint32(8) {
		row := g.Indices[g.Indptr[a]:g.Indptr[a+1]]
		at := slices.Index(row, 8+a)
		if at < 0 || g.weightOf(g.Indptr[a]+int64(at)) < 1000 {
			t.Errorf("of the edges between %d and %d, %v are left", a, 8+a, row)
		}
	}
	g.Weights = make([]uint32, 2000)
	if err := g.check(); err != nil {
		t.Error(err)
	}
}
