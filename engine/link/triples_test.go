package link

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

func onCPU(threads int) tensor.Device { return cpu.New(threads) }

// ofTriples returns the planted triples, with negatives and ranks as s says.
func ofTriples(t *testing.T, change func(s *Spec)) *Pairs {
	t.Helper()
	whole, err := sample.NewTopology(enginetest.Triples(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	s := *Default()
	s.Relations, s.Given, s.Decoder = enginetest.TripleRelations, enginetest.GivenTriples(), OfTriples
	change(&s)
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	p, err := New(t.Context(), &s, 3, whole)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Each triple is in the part that its file says, and no edge back is one.
func TestTriplesAreThoseOfTheFiles(t *testing.T) {
	p := ofTriples(t, func(*Spec) {})
	seen := map[Pair]bool{}
	for part, want := range *p.Given {
		of := p.Of[graph.Train+graph.Mark(part)]
		if uint64(len(of)) != want || want == 0 {
			t.Errorf("part %d has %d triples, want %d", part, len(of), want)
		}
		for _, triple := range of {
			if seen[triple] || seen[Pair{triple.Target, triple.Source, triple.Relation}] {
				t.Errorf("%v is there twice", triple)
			}
			seen[triple] = true
		}
	}
	if len(p.known.tails) != len(seen) || len(p.known.heads) != len(seen) {
		t.Errorf("%d and %d triples are known of %d", len(p.known.tails), len(p.known.heads), len(seen))
	}
	for triple := range seen {
		for _, all := range [][]Pair{p.known.tailsOf(triple), p.known.headsOf(triple)} {
			if !slices.Contains(all, triple) {
				t.Fatalf("%v is not among %v", triple, all)
			}
		}
		for _, other := range p.known.tailsOf(triple) {
			if !seen[other] || other.Source != triple.Source || other.Relation != triple.Relation {
				t.Fatalf("%v is not a tail of %v", other, triple)
			}
		}
		for _, other := range p.known.headsOf(triple) {
			if !seen[other] || other.Target != triple.Target || other.Relation != triple.Relation {
				t.Fatalf("%v is not a head of %v", other, triple)
			}
		}
	}
}

// Negatives of triples replace head or tail, each as often, keep the relation, and are no triples:
// in evaluations of any part, in epochs of training.
func TestNegativesOfTriples(t *testing.T) {
	p := ofTriples(t, func(*Spec) {})
	is := [graph.Test + 1]map[Pair]bool{}
	for part, of := range p.Of {
		is[part] = map[Pair]bool{}
		for _, triple := range of {
			is[part][triple] = true
		}
	}
	heads, tails, unseen, others := 0, 0, 0, 0
	for _, of := range p.Of[graph.Train] {
		for epoch := range uint64(3) {
			no := p.corrupt(of, epoch, 1, nil)
			if no != p.corrupt(of, epoch, 1, nil) {
				t.Fatal("drawn again, a negative is another")
			}
			if no != p.corrupt(of, epoch, 2, nil) {
				others++
			}
			switch {
			case no.Relation != of.Relation || (no.Source != of.Source) == (no.Target != of.Target):
				t.Fatalf("%v has the negative %v", of, no)
			case no.Source != of.Source:
				heads++
			default:
				tails++
			}
			hidden := is[graph.Validation][no] || is[graph.Test][no]
			if is[graph.Train][no] || epoch == 0 && hidden {
				t.Fatalf("in epoch %d the negative of %v is %v, a triple", epoch, of, no)
			}
			if hidden {
				unseen++
			}
		}
	}
	if share := float64(heads) / float64(heads+tails); share < 0.45 || share > 0.55 {
		t.Errorf("%d heads and %d tails are replaced", heads, tails)
	}
	if unseen == 0 || others == 0 {
		t.Errorf("%d negatives are triples that training must not know of, and %d differ", unseen, others)
	}
}

// A step's words name head, tail and relation, whoever has which sources.
func TestWordsOfTriples(t *testing.T) {
	p := ofTriples(t, func(s *Spec) { s.Negatives = 3 })
	places := []uint32{5, 90, 17, 18, 19, 20, 21, 200}
	var b Batch
	b.Begin(p, places, 4, nil)
	type word struct {
		Pair
		is bool
	}
	want, got := map[word]bool{}, map[word]bool{}
	for _, i := range places {
		of := p.Of[graph.Train][i]
		want[word{of, true}] = true
		for n := range 3 {
			want[word{p.corrupt(of, 4, n, nil), false}] = true
		}
	}
	sources := b.Sources()
	for _, some := range [][]uint32{sources[:3], sources[3:]} {
		ends, words := b.Ends(nil, nil, some)
		for ; len(words) > 0; words = words[WordsOfPair:] {
			got[word{Pair{ends[words[0]], ends[words[1]], uint32(words[2] >> 1)}, words[2]&yes != 0}] = true
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d words, want %d", len(got), len(want))
	}
	for w := range want {
		if !got[w] {
			t.Errorf("%v is missing", w)
		}
	}
}

// Filtered ranks are those of the definition, in both directions, with ties, among all vertices and
// among drawn ones, however many questions are scored at once.
func TestRanksOfTriples(t *testing.T) {
	const columns = 3
	for _, ranks := range []int{All, 15} {
		p := ofTriples(t, func(s *Spec) { s.Ranks, s.Width = ranks, columns })
		r := rand.New(rand.NewPCG(4, 1))
		n := p.whole.Vertices()
		rows, w := make([]float32, n*columns), make([]float64, p.Relations*columns)
		for i := range rows {
			rows[i] = float32(r.IntN(5) - 2)
		}
		for i := range w {
			w[i] = float64(r.IntN(3) - 1)
		}
		score := func(of Pair) (sum float64) {
			for c := range uint32(columns) {
				sum += float64(rows[of.Source*columns+c]) * float64(rows[of.Target*columns+c]) * w[of.Relation*columns+c]
			}
			return sum
		}
		for part := graph.Validation; part <= graph.Test; part++ {
			s := NewScorer(p, CrossEntropies, Threads{Count: 2, Open: onCPU})
			got, err := s.Part(t.Context(), part, rows, columns, w)
			if err != nil {
				t.Fatal(err)
			}
			reciprocal, hits, tied, filtered := 0.0, [3]float64{}, 0, 0
			for _, of := range p.Of[part] {
				for _, head := range []bool{false, true} {
					var others []uint32
					if ranks == All {
						for v := range n {
							others = append(others, uint32(v))
						}
					} else {
						purpose := uint64(ranked)
						if head {
							purpose = ofHead
						}
						draws := p.negatives.With(0).With(uint64(of.Source)).With(uint64(of.Target)).With(uint64(of.Relation)).With(purpose).Draws()
						for range ranks {
							others = append(others, uint32(draws.Below(uint64(n))))
						}
					}
					above, beside := 0, 0
					for _, v := range others {
						other := Pair{of.Source, v, of.Relation}
						if head {
							other = Pair{v, of.Target, of.Relation}
						}
						switch {
						case other == of:
						case slices.Contains(p.known.tails, other):
							filtered++
						case score(other) > score(of):
							above++
						case score(other) == score(of):
							beside++
						}
					}
					tied += beside
					rank := 1 + float64(above) + float64(beside)/2
					reciprocal += 1 / rank
					for i, most := range UsualHits {
						if rank <= float64(most) {
							hits[i]++
						}
					}
				}
			}
			all := float64(2 * len(p.Of[part]))
			if math.Abs(got.Reciprocal-reciprocal/all) > 1e-12 || tied == 0 || filtered == 0 {
				t.Errorf("%d ranks, part %d: %g, want %g, with %d ties and %d known triples", ranks, part, got.Reciprocal, reciprocal/all, tied, filtered)
			}
			for i := range hits {
				if math.Abs(got.Hits[i]-hits[i]/all) > 1e-12 {
					t.Errorf("%d ranks, part %d: hits %v, want %v of %g", ranks, part, got.Hits, hits, all)
				}
			}
		}
	}
}

// Scores that are no numbers rank last, and equal ones in the middle.
func TestTiesAndNoNumbers(t *testing.T) {
	nan, vertex := float32(math.NaN()), func(p Pair) uint32 { return p.Target }
	for want, scores := range map[float64][]float32{1: {3, 1, 2}, 2: {1, 1, 1}, 3: {nan, 1, 2}, 1.5: {2, 2, 1}, 2.5: {1, 1, nan}} {
		if got := rankAmong(scores, 0, nil, vertex); got != want {
			t.Errorf("%v: rank %g, want %g", scores, got, want)
		}
	}
	if got := rankAmong([]float32{1, 5, nan, 1}, 0, []Pair{{Target: 1}, {Target: 0}, {Target: 2}}, vertex); got != 1.5 {
		t.Errorf("rank %g without known ones", got)
	}
}

// Ranking ends when it is to.
func TestRankingOfTriplesEnds(t *testing.T) {
	p := ofTriples(t, func(s *Spec) { s.Ranks, s.Width = All, 2 })
	ended, end := context.WithCancelCause(t.Context())
	end(io.ErrClosedPipe)
	s := NewScorer(p, CrossEntropies, Threads{Count: 1, Open: onCPU})
	if err := s.rankTriples(ended, p.Of[graph.Test], make([]float32, 2*p.whole.Vertices()), 2, make([]float64, 2*p.Relations), new(Score)); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// A step of triples that was begun before takes no memory again.
func TestAStepOfTriplesAllocatesNothing(t *testing.T) {
	p := ofTriples(t, func(s *Spec) { s.Negatives = 4 })
	var b Batch
	var ends []uint32
	var words []int32
	one := func() {
		b.Begin(p, []uint32{5, 90, 17, 18}, 4, nil)
		ends, words = b.Ends(ends[:0], words[:0], b.Sources())
	}
	one()
	if n := testing.AllocsPerRun(10, one); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
