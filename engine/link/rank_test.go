package link

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// Ranks are those of the definition: with ties, without vertices that an edge joins to the source,
// among drawn vertices and among all.
func TestRanks(t *testing.T) {
	const columns = 2
	for _, ranks := range []int{20, All} {
		spec := Default()
		if spec.Ranks = ranks; ranks == 20 {
			spec.Hits = []int{2, 4, 7}
		}
		p, whole := pairsOf(t, spec, 3)
		r := rand.New(rand.NewPCG(2, 1))
		rows := make([]float32, whole.Vertices()*columns)
		for i := range rows {
			rows[i] = float32(r.IntN(7) - 3)
		}
		if ranks == All {
			p.Of[graph.Test] = p.Of[graph.Test][:40]
		}
		s, all := NewScorer(p, CrossEntropies, Threads{}), edges(whole)
		got, err := s.Part(t.Context(), graph.Test, rows, columns, nil)
		if err != nil {
			t.Fatal(err)
		}
		dot := func(u, v uint32) (sum float32) {
			for c := range uint32(columns) {
				sum += rows[u*columns+c] * rows[v*columns+c]
			}
			return sum
		}
		reciprocal, hits, known, tied := 0.0, [3]float64{}, 0, 0
		for _, of := range p.Of[graph.Test] {
			var others []uint32
			if ranks == All {
				for v := range whole.Vertices() {
					others = append(others, uint32(v))
				}
			} else {
				draws := p.negatives.With(0).With(uint64(of.Source)).With(uint64(of.Target)).With(ranked).Draws()
				for range ranks {
					others = append(others, uint32(draws.Below(uint64(whole.Vertices()))))
				}
			}
			scores := []float32{dot(of.Source, of.Target)}
			for _, v := range others {
				if all[Pair{Source: of.Source, Target: v}] || all[Pair{Source: v, Target: of.Source}] {
					known++
				} else if v != of.Source {
					scores = append(scores, dot(of.Source, v))
				}
			}
			yes := scores[0]
			slices.SortFunc(scores, func(a, b float32) int { return int(b - a) })
			first := slices.Index(scores, yes)
			last := first
			for last+1 < len(scores) && scores[last+1] == yes {
				last++
			}
			if last > first {
				tied++
			}
			rank := float64(first+last)/2 + 1
			reciprocal += 1 / rank
			for j, most := range spec.HitsAt() {
				if rank <= float64(most) {
					hits[j]++
				}
			}
		}
		n := float64(len(p.Of[graph.Test]))
		for j := range hits {
			hits[j] /= n
		}
		if math.Abs(got.Reciprocal-reciprocal/n) > 1e-12 || !slices.Equal(got.Hits, hits[:]) {
			t.Errorf("among %d: %g and %v, want %g and %v", ranks, got.Reciprocal, got.Hits, reciprocal/n, hits)
		}
		if known == 0 || tied == 0 {
			t.Errorf("among %d: %d known edges and %d ties: nothing is shown", ranks, known, tied)
		}
		if got, err := s.Part(t.Context(), graph.Train, rows, columns, nil); err != nil || got.Reciprocal != 0 || got.Area == 0 {
			t.Errorf("pairs for training have the score %+v: %v", got, err)
		}
	}
}

// What is no number counts against a model: such a pair has the worst rank, and such a vertex is
// above any other.
func TestRanksOfWhatIsNoNumber(t *testing.T) {
	spec := Default()
	spec.Ranks = All
	p, whole := pairsOf(t, spec, 3)
	p.Of[graph.Test] = p.Of[graph.Test][:1]
	of, all := p.Of[graph.Test][0], edges(whole)
	others := 0
	for v := range uint32(whole.Vertices()) {
		if v != of.Source && v != of.Target && !all[Pair{Source: of.Source, Target: v}] && !all[Pair{Source: v, Target: of.Source}] {
			others++
		}
	}
	for what, isNone := range map[string]func(v uint32) bool{
		"all":        func(uint32) bool { return true },
		"the source": func(v uint32) bool { return v == of.Source },
		"the target": func(v uint32) bool { return v == of.Target },
		"the others": func(v uint32) bool { return v != of.Source && v != of.Target },
	} {
		rows := make([]float32, whole.Vertices())
		for v := range rows {
			if rows[v] = 1; isNone(uint32(v)) {
				rows[v] = float32(math.NaN())
			}
		}
		got, err := NewScorer(p, CrossEntropies, Threads{}).Part(t.Context(), graph.Test, rows, 1, nil)
		if want := 1 / float64(1+others); err != nil || got.Reciprocal != want || got.Hits[0] != 0 {
			t.Errorf("%s: %g and %v, want %g: %v", what, got.Reciprocal, got.Hits, want, err)
		}
	}
}
