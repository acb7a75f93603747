package link

import (
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// halves returns regions of two groups that have all vertices between them, and a third group that has
// none: the first sees a quarter of the other's, in two runs, and the second nothing else.
func halves(p *Pairs) *Regions {
	n := uint32(p.whole.Vertices())
	return NewRegions(p, []Region{
		{Span{0, n / 2}, []Span{{0, n / 2}, {n / 2, n / 2}, {n / 2, n/2 + n/16}, {n - n/16, n}}},
		{Span{n / 2, n / 2}, []Span{{n / 4, n / 2}}},
		{Span{n / 2, n}, []Span{{n / 2, n}}},
	})
}

// A region of all vertices is as none.
func TestOneRegionIsTheWholeGraph(t *testing.T) {
	p, _ := pairsOf(t, Default(), 3)
	all := NewRegions(p, []Region{{Span{0, uint32(p.whole.Vertices())}, []Span{{0, uint32(p.whole.Vertices())}}}})
	for _, of := range p.Of[graph.Train] {
		if !all.Has(of) || p.negative(of, 2, 1, all.of(of.Source)) != p.negative(of, 2, 1, nil) {
			t.Fatalf("%v has another negative", of)
		}
	}
}

// A step has the pairs inside a region, and negatives that lie there, too.
func TestNegativesLieInRegions(t *testing.T) {
	typed, _ := typedPairs(t)
	plain, _ := pairsOf(t, Default(), 3)
	triples := ofTriples(t, func(*Spec) {})
	for name, p := range map[string]*Pairs{"plain": plain, "relation": typed, "triples": triples} {
		for _, from := range Froms {
			if p.Relations > 0 && from != Uniform {
				continue
			}
			p.From, p.Negatives = from, 3
			r := halves(p)
			places := make([]uint32, len(p.Of[graph.Train]))
			inside := 0
			for i, of := range p.Of[graph.Train] {
				places[i] = uint32(i)
				if r.Has(of) {
					inside++
				}
			}
			var b Batch
			b.Begin(p, places, 4, r)
			ends, words := b.Ends(nil, nil, b.Sources())
			if b.Count() != inside || len(words) != 4*WordsOfPair*inside || inside == 0 || inside == len(places) {
				t.Errorf("%s, %s: %d of %d pairs lie inside, and %d are learnt by %d words", name, from, inside, len(places), b.Count(), len(words))
			}
			var in *region
			for ; len(words) > 0; words = words[WordsOfPair:] {
				u, v := ends[words[0]], ends[words[1]]
				if words[2]&1 == 1 {
					in = r.of(u)
					continue
				}
				if !in.has(u) || !in.has(v) {
					t.Fatalf("%s, %s: %d and %d are a negative of the group from %d", name, from, u, v, in.Sources.First)
				}
			}
		}
	}
}

// The candidates of a region are those of the graph that lie inside, each once, in order.
func TestCandidatesOfARegion(t *testing.T) {
	typed, _ := typedPairs(t)
	plain, _ := pairsOf(t, Default(), 3)
	for name, p := range map[string]*Pairs{"plain": plain, "relation": typed} {
		for _, in := range halves(p).all {
			var want, got []uint32
			for i := range p.candidates(nil) {
				if v := p.candidate(nil, i); in.has(v) {
					want = append(want, v)
				}
			}
			for i := range p.candidates(&in) {
				got = append(got, p.candidate(&in, i))
			}
			if !slices.Equal(got, want) || len(want) == 0 {
				t.Errorf("%s: of the region from %d there are %d candidates, and %d vertices", name, in.Sources.First, len(got), len(want))
			}
		}
	}
}
