package link

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/metric"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A Score is how well the pairs of one part of a split rank above as many negatives. If there are
// no pairs, all is 0.
type Score struct {
	Count           int // pairs, without negatives
	Loss            float64
	Area, Precision float64 // under the ROC curve; on average
	// Reciprocal is the mean of 1/rank, and Hits are the shares of pairs with a rank up to those of
	// Spec.HitsAt. Both are 0 where pairs are not ranked. A triple has two ranks: of its tail among the
	// tails of its head, and of its head among the heads of its tail.
	Reciprocal float64
	Hits       []float64
}

// A Scorer scores embeddings. It keeps its memory.
type Scorer struct {
	of         *Pairs
	decoder    Decoder
	loss       summand
	a, b       []float64
	triples    tripleRanks
	store      memory
	comparison metric.Comparison
}

// NewScorer returns a scorer of pairs that models learn by a loss. It has threads where it scores
// many pairs at once.
func NewScorer(of *Pairs, loss string, threads Threads) *Scorer {
	return &Scorer{of: of, decoder: NewDecoder(of.Decoder, of.Width), loss: summands[loss], triples: tripleRanks{threads: threads}}
}

// Threads sets how many threads score many pairs at once; 0: all.
func (s *Scorer) Threads(n int) { s.triples.threads.Count = n }

// least is how many training pairs are scored, if there are as many, where validation and test
// have fewer.
const least = 1000

// scored returns the pairs of a part that are scored. Training has many more pairs than the
// others, and their scores decide nothing: of these every so many-th is.
func (s *Scorer) scored(part graph.Mark) (pairs []Pair, step int) {
	pairs = s.of.Of[part]
	if part != graph.Train {
		return pairs, 1
	}
	return pairs, max(1, len(pairs)/max(least, len(s.of.Of[graph.Validation]), len(s.of.Of[graph.Test])))
}

// Bytes returns how much memory scoring takes beside the embeddings.
func (s *Scorer) Bytes() (most uint64) {
	for part := graph.Train; part <= graph.Test; part++ {
		pairs, step := s.scored(part)
		n := (len(pairs) + step - 1) / step
		most = max(most, 2*4*uint64(n+s.negatives(part, n)))
	}
	return most + s.of.rankBytes()
}

// negatives returns how many pairs so many of a part are compared with.
func (s *Scorer) negatives(part graph.Mark, pairs int) int {
	if given := s.of.given(part); len(given) > 0 {
		return len(given)
	}
	return pairs
}

// Part scores the pairs of a part against one drawn negative each, or all given ones, the same in all
// evaluations, and ranks those of validation and test. rows are the embeddings of all vertices, and
// w are the decoder's weights.
func (s *Scorer) Part(ctx context.Context, part graph.Mark, rows []float32, columns int, w []float64) (r Score, err error) {
	pairs, step := s.scored(part)
	n := (len(pairs) + step - 1) / step
	r.Hits = make([]float64, len(s.of.HitsAt()))
	if n == 0 {
		return r, nil
	}
	ranked := 0 // ranks that were counted
	drawn := len(s.of.given(part)) == 0
	m := s.negatives(part, n)
	sides := []metric.Sides{{m, n}}
	ranking := metric.NewRanking(sides, 1, func(target []int32, _ int) int { return int(target[0]) })
	s.store = plain.Grow(s.store, int(ranking.Size()))
	ranking.Begin(s.store)
	targets := []int32{metric.With, metric.Without}
	logits, slopes := make([]float64, 2), make([]float64, 2)
	margin := cmp.Or(s.of.Margin, usualMargin)
	for i := 0; i < len(pairs); i += step {
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		of := pairs[i]
		other := s.of.against(of)
		no := s.logit(rows, columns, w, other)
		yes := s.logit(rows, columns, w, of) // last, as rank reads its source
		logits[0], logits[1] = yes, no
		r.Loss += s.loss(0, slopes, logits, margin)
		switch {
		case part == graph.Train:
		case s.of.Ranks == GivenOfSource:
			ranked += s.rankOfSource(&r, part, rows, columns, w, of, yes)
		case (s.of.Ranks > 0 || s.of.Ranks == All) && s.of.Relations == 0:
			ranked++
			s.count(&r, s.rank(rows, columns, w, of, yes))
		}
		if added := []float32{float32(yes), float32(no)}; drawn {
			err = ranking.Add(added, targets)
		} else {
			err = ranking.Add(added[:1], targets[:1])
		}
		if err != nil {
			return r, err
		}
	}
	if err := s.addGiven(ctx, ranking, part, rows, columns, w); err != nil {
		return r, err
	}
	err = ranking.Sort(func(bytes int64) (metric.Store, error) { return memory(plain.Room(int(bytes))), nil })
	if err != nil {
		return r, fmt.Errorf("sort the scores of pairs: %w", err)
	}
	keys := plain.Numbers[uint32](ranking.Keys(0, 1))
	ranks, err := s.comparison.Compare([]metric.Stream{&stream{keys[:m]}}, []metric.Stream{&stream{keys[m:]}}, sides[0])
	if err != nil {
		return r, fmt.Errorf("rank the scores of pairs: %w", err)
	}
	if s.of.Ranks == Given && part != graph.Train {
		ranked = n
		s.rankGiven(&r, keys[:m], keys[m:])
	}
	if s.of.Ranks != 0 && s.of.Relations > 0 && part != graph.Train {
		if err := s.rankTriples(ctx, pairs, rows, columns, w, &r); err != nil {
			return r, err
		}
		ranked = 2 * n
	}
	r.Count, r.Loss, r.Reciprocal = n, r.Loss/float64(n), r.Reciprocal/float64(max(1, ranked))
	for j := range r.Hits {
		r.Hits[j] /= float64(max(1, ranked))
	}
	r.Area, _ = metric.Area([]metric.Ranks{ranks}, sides)
	r.Precision, _ = metric.Precision([]metric.Ranks{ranks}, sides)
	return r, nil
}

// count counts a rank.
func (s *Scorer) count(r *Score, rank float64) {
	r.Reciprocal += 1 / rank
	for j, most := range s.of.HitsAt() {
		if rank <= float64(most) {
			r.Hits[j]++
		}
	}
}

// logit returns the logit of an edge.
func (s *Scorer) logit(rows []float32, columns int, w []float64, of Pair) float64 {
	s.a, s.b = widen(s.a[:0], rows[int(of.Source)*columns:][:columns]), widen(s.b[:0], rows[int(of.Target)*columns:][:columns])
	return s.decoder.Score(w, s.a, s.b, int(of.Relation))
}

func widen(to []float64, row []float32) []float64 {
	for _, x := range row {
		to = append(to, float64(x))
	}
	return to
}

// memory is a metric.Store.
type memory []byte

// Write implements metric.Store.
func (m memory) Write(b []byte, at int64) error {
	copy(m[at:], b)
	return nil
}

// Bytes implements metric.Store.
func (m memory) Bytes() []byte { return m }

// stream is a metric.Stream of keys in memory.
type stream struct{ rest []uint32 }

// Next implements metric.Stream.
func (s *stream) Next() (some []uint32, err error) {
	some, s.rest = s.rest, nil
	return some, nil
}
