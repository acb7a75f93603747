package vicinity

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Sets are compared with maps, over operations in any order.
func TestSetsAreAsWrittenDown(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := uint32(1 + r.IntN(5*pageVertices))
		sets, want := []*Set{NewSet(n), NewSet(n)}, []map[uint32]bool{{}, {}}
		for range 30 {
			i := r.IntN(2)
			s, w := sets[i], want[i]
			switch r.IntN(5) {
			case 0:
				first := uint32(r.IntN(int(n)))
				end := first + uint32(r.IntN(int(n-first)+1))
				s.AddRange(Range{first, end})
				for v := first; v < end; v++ {
					w[v] = true
				}
			case 1:
				s.AddAll(sets[1-i])
				for v := range want[1-i] {
					w[v] = true
				}
			case 2:
				sets[i] = s.Clone()
				s.AddRange(Range{0, n}) // the old one
			default:
				v := uint32(r.IntN(int(n)))
				s.Add(v)
				w[v] = true
			}
		}
		for i, s := range sets {
			var all, rest []uint32
			for v := range n + 2*pageVertices {
				if s.Has(v) != want[i][v] {
					t.Fatalf("seed %d: vertex %d of %d is there: %v", seed, v, n, s.Has(v))
				}
				if want[i][v] {
					all = append(all, v)
					if !want[1-i][v] {
						rest = append(rest, v)
					}
				}
			}
			if got := slices.Collect(s.All()); !slices.Equal(got, all) || s.Len() != len(all) {
				t.Fatalf("seed %d: %d and %d vertices, not %d", seed, len(got), s.Len(), len(all))
			}
			if got := slices.Collect(s.Without(sets[1-i])); !slices.Equal(got, rest) {
				t.Fatalf("seed %d: %d vertices that the other has not, and there are %d", seed, len(got), len(rest))
			}
			for range 20 {
				first := uint32(r.IntN(int(n)))
				end := first + uint32(r.IntN(int(n-first)+1))
				count := 0
				for v := first; v < end; v++ {
					if want[i][v] {
						count++
					}
				}
				if got := s.Count(first, end); got != count {
					t.Fatalf("seed %d: %d vertices from %d to %d, not %d", seed, got, first, end, count)
				}
			}
			p := NewPlaces(all, n)
			for at, v := range all {
				if got, ok := p.Of(v); !ok || got != at {
					t.Fatalf("seed %d: vertex %d has place %d, not %d", seed, v, got, at)
				}
			}
			if _, ok := p.Of(n + pageVertices); ok {
				t.Fatal("a vertex that the graph has not has a place")
			}
			for _, v := range rest {
				other := NewPlaces(slices.Collect(sets[1-i].All()), n)
				if _, ok := other.Of(v); ok {
					t.Fatalf("seed %d: vertex %d has a place elsewhere", seed, v)
				}
			}
		}
	}
}

// Memory follows from what is in a set and not from the graph.
func TestSetsAreNotAsLongAsTheGraph(t *testing.T) {
	const n = 100 << 20
	s := NewSet(n)
	s.AddRange(Range{1 << 20, 64 << 20})
	s.Add(70 << 20)
	p := NewPlaces([]uint32{5, 80 << 20}, n)
	if got, most := s.Bytes()+p.Bytes(), uint64(3*4*n/pageVertices+1024); got > most {
		t.Errorf("they take %d bytes, and the tables of their pages %d", got, most)
	}
}
