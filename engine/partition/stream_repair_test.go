package partition

import (
	"fmt"
	"slices"
	"testing"
)

// streamWeighed is a graph of communities with weights of its own.
func streamWeighed(constraints int, weight func(v uint32, community uint32, c int) uint32) *streamHeld {
	const communities, size = 40, 250
	h := streamPlanted(communities*size, 16, func(v uint32, random uint64) uint32 {
		if random>>32%8 == 0 {
			return uint32(random) % (communities * size)
		}
		return (v%communities + uint32(random)%size*communities)
	})
	h.Graph.Constraints, h.Weights = constraints, nil
	for v := range h.Vertices() {
		for c := range constraints {
			h.Weights = append(h.Weights, weight(v, v%communities, c))
		}
	}
	return h
}

// Balance is a promise, also where weights go against the communities and against
// each other.
func TestStreamingIsBalancedAgainstTheGraph(t *testing.T) {
	for name, h := range map[string]*streamHeld{
		"training in few communities": streamWeighed(3, func(v, community uint32, c int) uint32 {
			return [3]uint32{1, uint32(1 + randomMix(1, uint64(v))%30), min(1, community/36)}[c]
		}),
		"either one weight or the other": streamWeighed(3, func(_, community uint32, c int) uint32 {
			return [3]uint32{1, 1 + 20*(community%2), 1 + 20*(1-community%2)}[c]
		}),
		"few heavy vertices": streamWeighed(2, func(v, _ uint32, c int) uint32 {
			return [2]uint32{1, 1 + 100*min(1, uint32(randomMix(3, uint64(v))%50)/49)}[c]
		}),
		"five weights": streamWeighed(5, func(v, community uint32, c int) uint32 {
			return uint32(randomMix(uint64(c), uint64(community))%20 + randomMix(uint64(c), uint64(v))%5)
		}),
		"a weight of nothing": streamWeighed(2, func(_, _ uint32, c int) uint32 { return uint32(1 - c) }),
	} {
		for _, parts := range []int{2, 16, 64} {
			for seed := range uint64(2) {
				tolerance := []float64{1.05, 1.10, 1.10, 1.10, 1.10}[:h.Graph.Constraints]
				part := streamPart(t, h, Options{Parts: parts, Seed: seed, Tolerance: tolerance})
				heaviest, empty := streamHeaviest(h, part, parts)
				what := fmt.Sprintf("%s, %d parts, seed %d: %.3f in %d passes, cut %.3f", name, parts, seed, heaviest, h.passes, streamCut(h, part))
				if seed == 0 {
					t.Log(what)
				}
				for c, x := range heaviest {
					if x > tolerance[c]+1e-9 || empty > 0 {
						t.Errorf("%s, %d empty: constraint %d is over %v", what, empty, c, tolerance[c])
					}
				}
			}
		}
	}
}

// Parts that got no vertices get some, though nothing is too heavy.
func TestRepairFillsEmptyParts(t *testing.T) {
	h := streamPlanted(100, 0, nil)
	s, err := newStreamer(t.Context(), h, Options{Parts: 10, Tolerance: []float64{10}})
	if err != nil {
		t.Fatal(err)
	}
	s.label, s.limit[0] = slices.Repeat([]uint16{streamNone}, 100), 100
	for v := range uint32(100) {
		s.move(v, uint16(v%3), []uint32{1})
	}
	if err := s.repair(); err != nil {
		t.Fatal(err)
	}
	if _, empty := streamHeaviest(h, s.label, 10); empty > 0 || h.passes != 1 {
		t.Errorf("%d parts are empty after %d passes", empty, h.passes)
	}
}
