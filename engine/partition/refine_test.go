package partition

import (
	"slices"
	"testing"
)

// refining is a refiner at work on a partition at random.
func refining(t *testing.T, g *Graph, parts int, seed uint64) *refiner {
	o := Options{Parts: parts, Tolerance: tolerances[:g.Constraints]}
	most, lumpy := bounds(g, o)
	r := newRefiner(newCrew(t.Context(), 2), g, parts, most, lumpy)
	part := Random(uint32(g.vertices()), parts, seed)
	r.attach(g, part, make([]uint32, len(g.Indices)), make([]uint32, len(g.Indices)))
	r.survey()
	return r
}

// consistent checks what the refiner keeps against what it would find anew.
func consistent(t *testing.T, r *refiner) {
	t.Helper()
	fresh := newRefiner(r.crew, r.g, r.parts, r.most, make([]bool, len(r.most)))
	fresh.attach(r.g, r.part, make([]uint32, len(r.g.Indices)), make([]uint32, len(r.g.Indices)))
	fresh.survey()
	if !slices.Equal(fresh.load, r.load) {
		t.Fatal("the loads are wrong")
	}
	for v := range uint32(len(r.part)) {
		if r.count[v] != fresh.count[v] {
			t.Fatalf("vertex %d is near %d parts, not %d", v, r.count[v], fresh.count[v])
		}
		for p := range uint16(r.parts) {
			if r.tied(v, p) != fresh.tied(v, p) {
				t.Fatalf("vertex %d is tied to part %d by %d, not %d", v, p, r.tied(v, p), fresh.tied(v, p))
			}
		}
	}
}

func TestClimbOnlyBetters(t *testing.T) {
	for name, g := range testGraphs() {
		r := refining(t, g, 7, 1)
		r.balance()
		before, excess := partCut(g, r.part), r.excess()
		took := r.climbOnce()
		consistent(t, r)
		if after := partCut(g, r.part); after != before-took || took < 0 {
			t.Errorf("%s: says that it takes %d off, but the cut goes from %d to %d", name, took, before, after)
		}
		if r.excess() > excess {
			t.Errorf("%s: parts have become too heavy", name)
		}
	}
}

func TestSweepOnlyBetters(t *testing.T) {
	for name, g := range testGraphs() {
		r := refining(t, g, 7, 1)
		before, excess := partCut(g, r.part), r.excess()
		r.sweep()
		r.survey()
		consistent(t, r)
		if after := partCut(g, r.part); after >= before && name != "hubs" {
			t.Errorf("%s: the cut goes from %d to %d", name, before, after)
		}
		if r.excess() > excess {
			t.Errorf("%s: parts have become too heavy", name)
		}
	}
}

func TestSettleEmptiesHeavyParts(t *testing.T) {
	for name, g := range testGraphs() {
		r := refining(t, g, 9, 1)
		for v := range r.part {
			r.part[v] /= 3 // all in the first three
		}
		r.attach(g, r.part, r.near, r.tie)
		r.survey()
		r.settle()
		consistent(t, r)
		if p, c := overweight(g, r.part, Options{Parts: 9}); p >= 0 {
			t.Errorf("%s: part %d is still too heavy in constraint %d", name, p, c)
		}
	}
}

func TestBisectionKeepsGains(t *testing.T) {
	for name, g := range testGraphs() {
		total := g.totals()
		var most [2][]int64
		for s := range most {
			for _, sum := range total {
				most[s] = append(most[s], sum*53/100)
			}
		}
		b := newBisection(g, most, scales(g), 1)
		b.growOnce(0.5)
		before, excess := b.count(), b.excess()
		b.refine(1)
		gains := slices.Clone(b.gain)
		cut := b.count()
		if !slices.Equal(gains, b.gain) {
			t.Errorf("%s: the gains are wrong", name)
		}
		if b.excess() > excess || b.excess() == excess && cut > before {
			t.Errorf("%s: refined from cut %d and excess %g to %d and %g", name, before, excess, cut, b.excess())
		}
	}
}

func TestHeapIsOrdered(t *testing.T) {
	const n = 500
	h := newHeap(n)
	keys := map[uint32]float64{}
	for i := range uint64(20000) {
		roll := randomMix(4, i)
		v, key := uint32(roll%n), float64(roll>>32%1000)
		switch {
		case roll>>60 < 9:
			h.put(v, key)
			keys[v] = key
		case roll>>60 < 12 && h.has(v):
			h.remove(v)
			delete(keys, v)
		case len(keys) > 0:
			top, key := h.pop()
			if key != keys[top] {
				t.Fatalf("vertex %d comes with %g, not %g", top, key, keys[top])
			}
			for v, k := range keys {
				if k > key {
					t.Fatalf("%g comes before the %g of vertex %d", key, k, v)
				}
			}
			delete(keys, top)
		}
		if len(h.list) != len(keys) {
			t.Fatal("something was lost")
		}
	}
}

func TestArrangementPutsARingInOrder(t *testing.T) {
	// Parts that are tied in a ring, numbered at random: each run of them should be tied at its ends alone.
	const parts = 48
	ring := Random(parts, parts, 3)
	a := &arrangement{parts: parts, edges: make([]int64, parts*parts), dice: 1}
	for i := range parts {
		p, q := int(ring[i]), int(ring[(i+1)%parts])
		a.edges[p*parts+q], a.edges[q*parts+p] = 10, 10
	}
	for p := range parts {
		a.number = append(a.number, p)
	}
	for _, count := range arrangeRuns {
		a.runs = append(a.runs, a.share(count))
	}
	part := make([]uint16, parts)
	for p := range part {
		part[p] = uint16(p)
	}
	a.apply(part)
	sorted := slices.Clone(part)
	slices.Sort(sorted)
	for i, number := range sorted {
		if int(number) != i {
			t.Fatalf("no part is number %d", i)
		}
	}
	for _, count := range arrangeRuns {
		cut := 0
		for i := range parts {
			x, y := runOf(int(part[ring[i]]), count, parts), runOf(int(part[ring[(i+1)%parts]]), count, parts)
			if x != y {
				cut++
			}
		}
		if cut > 2*count {
			t.Errorf("%d runs cut the ring in %d places", count, cut)
		}
	}
}
