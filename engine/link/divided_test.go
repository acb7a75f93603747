package link

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// ofDivided returns the planted pairs with a given split, the ids of vertices in the source, and all
// edges.
func ofDivided(t *testing.T, negatives bool, change func(s *Spec)) (p *Pairs, ids []uint32) {
	t.Helper()
	shards, types := enginetest.Divided(t, 3, negatives)
	whole, err := sample.NewTopology(shards)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shards {
		for _, id := range s.Originals.Ints {
			ids = append(ids, uint32(id))
		}
	}
	s := *Default()
	s.Given = types.Given
	change(&s)
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if p, err = New(t.Context(), &s, 3, whole); err != nil {
		t.Fatal(err)
	}
	return p, ids
}

// Each pair is once in the part that its file says, an edge and its reverse being one.
func TestPairsAreThoseOfTheGivenSplit(t *testing.T) {
	p, ids := ofDivided(t, true, func(*Spec) {})
	want, got := map[Pair]graph.Mark{}, 0
	for a := range uint32(enginetest.DividedVertices) {
		for b := a + 1; b < enginetest.DividedVertices; b++ {
			if part, is := enginetest.DividedPart(a, b); is {
				want[Pair{Source: a, Target: b}] = part
			}
		}
	}
	directions := [2]int{}
	for part, pairs := range p.Of {
		for _, of := range pairs {
			a, b := ids[of.Source], ids[of.Target]
			key := Pair{Source: min(a, b), Target: max(a, b)}
			if want[key] != graph.Mark(part) || part == 0 {
				t.Errorf("%d and %d are in part %d, want %d", a, b, part, want[key])
			}
			delete(want, key)
			got++
			if of.Source < of.Target {
				directions[0]++
			} else {
				directions[1]++
			}
			if held := graph.Mark(part) != graph.Train; p.held(of.Source, of.Target) != held || p.held(of.Target, of.Source) != held {
				t.Errorf("%v of part %d: held is not %v", of, part, held)
			}
			if !p.joined(of.Source, of.Target, false) || !p.joined(of.Target, of.Source, false) || p.joined(of.Source, of.Target, true) != (graph.Mark(part) == graph.Train) {
				t.Errorf("%v of part %d is joined in the wrong way", of, part)
			}
		}
	}
	if len(want) > 0 || directions[0] < got/4 || directions[1] < got/4 {
		t.Errorf("%d pairs are missing of %d, of which %d lead up and %d down", len(want), got, directions[0], directions[1])
	}
	for part := graph.Validation; part <= graph.Test; part++ {
		against := p.Against[part]
		if len(against) < len(p.Of[part]) || !slices.IsSortedFunc(against, compare) {
			t.Errorf("part %d has %d pairs, and %d to compare with", part, len(p.Of[part]), len(against))
		}
		for _, of := range against {
			if p.joined(of.Source, of.Target, false) {
				t.Errorf("%v is to be compared with, and counts as an edge", of)
			}
		}
	}
	if len(p.Against[graph.Train]) > 0 {
		t.Error("pairs for training are compared with given ones")
	}
}

// Negatives of epochs are no edges for training; those of evaluations are no edges at all.
func TestNegativesOfAGivenSplit(t *testing.T) {
	p, _ := ofDivided(t, true, func(*Spec) {})
	heldOut := 0
	for epoch := range uint64(30) {
		for _, of := range p.Of[graph.Train] {
			switch v := p.negative(of, epoch, 0, nil); {
			case v == of.Source || p.joined(of.Source, v, epoch > 0):
				t.Fatalf("epoch %d: the negative of %v is %d", epoch, of, v)
			case p.joined(of.Source, v, false):
				heldOut++
			}
		}
	}
	if heldOut == 0 {
		t.Error("no negative is an edge of validation or test: training knows which these are")
	}
}

// Areas and ranks are those of the definitions, as the Open Graph Benchmark has them: a pair is a hit
// at K if its score is above the K-th best one of the given pairs.
func TestScoresAgainstGivenPairs(t *testing.T) {
	const columns = 2
	for _, ranks := range []int{Given, GivenOfSource} {
		p, _ := ofDivided(t, true, func(s *Spec) { s.Ranks, s.Hits = ranks, []int{1, 2, 20} })
		r := rand.New(rand.NewPCG(2, 1))
		rows := make([]float32, p.whole.Vertices()*columns)
		for i := range rows {
			rows[i] = float32(r.IntN(5) - 2)
		}
		score := func(of Pair) (sum float64) {
			for c := range uint32(columns) {
				sum += float64(rows[of.Source*columns+c] * rows[of.Target*columns+c])
			}
			return sum
		}
		for part := graph.Validation; part <= graph.Test; part++ {
			s := NewScorer(p, CrossEntropies, Threads{})
			got, err := s.Part(t.Context(), part, rows, columns, nil)
			if err != nil {
				t.Fatal(err)
			}
			above, tied, reciprocal, hits, n := 0.0, 0, 0.0, [3]float64{}, 0.0
			for _, of := range p.Of[part] {
				var scores []float64
				for _, no := range p.Against[part] {
					switch x := score(no); {
					case x < score(of):
						above++
					case x == score(of):
						above += 0.5
					}
					if ranks == Given || no.Source == of.Source {
						scores = append(scores, score(no))
					}
				}
				if len(scores) == 0 {
					continue
				}
				n++
				slices.SortFunc(scores, func(a, b float64) int { return int(b - a) })
				higher, equal := 0, 0
				for _, x := range scores {
					if x > score(of) {
						higher++
					} else if x == score(of) {
						equal++
					}
				}
				tied += equal
				reciprocal += 1 / (1 + float64(higher) + float64(equal)/2)
				for i, most := range s.of.Hits {
					if most > len(scores) || score(of) > scores[most-1] {
						hits[i]++
					}
				}
			}
			if area := above / float64(len(p.Of[part])*len(p.Against[part])); math.Abs(got.Area-area) > 1e-12 || got.Count != len(p.Of[part]) {
				t.Errorf("part %d has the area %g of %d, want %g", part, got.Area, got.Count, area)
			}
			if math.Abs(got.Reciprocal-reciprocal/n) > 1e-12 || tied == 0 {
				t.Errorf("part %d: %g, want %g, with %d ties", part, got.Reciprocal, reciprocal/n, tied)
			}
			for i := range hits {
				if math.Abs(got.Hits[i]-hits[i]/n) > 1e-12 || i == 0 && hits[i] == n {
					t.Errorf("part %d: hits %v, want %v of %g", part, got.Hits, hits, n)
				}
			}
			if needs, sorted := s.Bytes(), uint64(len(p.Of[part])+len(p.Against[part])); needs < 8*sorted {
				t.Errorf("%d scores are sorted in %d bytes", sorted, needs)
			}
		}
		if got, err := NewScorer(p, CrossEntropies, Threads{}).Part(t.Context(), graph.Train, rows, columns, nil); err != nil || got.Reciprocal != 0 || got.Area == 0 {
			t.Errorf("pairs for training have the score %+v: %v", got, err)
		}
	}
}

// Scores that are no numbers rank last as those of pairs, and first as those of given ones.
func TestGivenPairsThatAreNoNumbers(t *testing.T) {
	p, _ := ofDivided(t, true, func(s *Spec) { s.Ranks = Given })
	rows := make([]float32, p.whole.Vertices())
	for v := range rows {
		rows[v] = float32(math.NaN())
	}
	for _, ranks := range []int{Given, GivenOfSource} {
		p.Ranks = ranks
		got, err := NewScorer(p, CrossEntropies, Threads{}).Part(t.Context(), graph.Test, rows, 1, nil)
		if last := 1 / float64(1+len(p.Against[graph.Test])); err != nil || got.Area != 0 || got.Hits[0] != 0 || got.Reciprocal > 0.5 || ranks == Given && math.Abs(got.Reciprocal-last) > 1e-12 {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestScoringGivenPairsEnds(t *testing.T) {
	p, _ := ofDivided(t, true, func(s *Spec) { s.Ranks = Given })
	ended, end := context.WithCancelCause(t.Context())
	end(io.ErrClosedPipe)
	s := NewScorer(p, CrossEntropies, Threads{})
	if err := s.addGiven(ended, nil, graph.Test, nil, 1, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// Where no edge has a given pair of its source, ranks by source would say 0 of nothing.
func TestGivenPairsOfOtherSources(t *testing.T) {
	p, _ := ofDivided(t, true, func(s *Spec) { s.Ranks = GivenOfSource })
	for i := range p.Against[graph.Test] {
		p.Against[graph.Test][i].Source = uint32(p.whole.Vertices())
	}
	if err := p.compared(); err == nil || !strings.Contains(err.Error(), "no edge of test has a given pair of its source") {
		t.Error(err)
	}
}

// What a dataset does not have can't be compared with.
func TestGivenPairsThatAreMissing(t *testing.T) {
	shards, types := enginetest.Divided(t, 3, false)
	whole, err := sample.NewTopology(shards)
	if err != nil {
		t.Fatal(err)
	}
	s := *Default()
	s.Given, s.Ranks = types.Given, Given
	if _, err := New(t.Context(), &s, 3, whole); err == nil || !strings.Contains(err.Error(), "has no pairs to compare its edges") {
		t.Error(err)
	}
	plain, err := sample.NewTopology(enginetest.Tiny(t, 60, 2))
	if err != nil {
		t.Fatal(err)
	}
	s.Ranks = 0
	if _, err := New(t.Context(), &s, 3, plain); err == nil || !strings.Contains(err.Error(), "no split of their own") {
		t.Error(err)
	}
}
