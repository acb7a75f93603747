package link

import (
	"errors"
	"fmt"
	"slices"
)

// The numbers of Spec.Ranks that stand for no number of vertices. By the latter two, pairs of
// validation and test are compared with those that the dataset has for that, in ranks and in areas:
// each with all of its part, or with those of its source.
const (
	All           = -1 // all vertices
	Given         = -2
	GivenOfSource = -3
)

// JobRanks is how many vertices a job that says nothing of it ranks each pair among.
const JobRanks = 100

// UsualHits are the ranks up to which a pair is a hit, in recipes that name none.
var UsualHits = []int{1, 3, 10}

// MostHits bounds how many a recipe may name: records of epochs have little room for metrics.
const MostHits = 3

// HitsAt returns the ranks up to which a pair is a hit.
func (s *Spec) HitsAt() []int {
	if len(s.Hits) == 0 {
		return UsualHits
	}
	return s.Hits
}

func (s *Spec) checkHits() error {
	switch {
	case len(s.Hits) > MostHits:
		return fmt.Errorf("{link.hits} has %d ranks: give up to %d, such as 20,50,100", len(s.Hits), MostHits)
	case slices.ContainsFunc(s.Hits, func(most int) bool { return most < 1 || most > MostRanks }):
		return fmt.Errorf("{link.hits} is %v: give ranks from 1 to %d, such as 20,50,100", s.Hits, MostRanks)
	case !slices.IsSorted(s.Hits) || len(slices.Compact(slices.Clone(s.Hits))) < len(s.Hits):
		return errors.New("{link.hits} does not ascend: give each rank once, the lowest first, such as 20,50,100")
	}
	return nil
}

// rank returns the rank of a scored pair among the pairs of its source with other vertices: some
// that are drawn, with replacement, the same in all evaluations, or all. Those that an edge joins
// to the source, in either direction and whichever part of the split it is in, are left out, and so
// is the source. Equal scores share the mean of their ranks: a pair with two above and one
// beside it has the rank 3.5. A score that is no number is below none, and its own pair's is above
// none. s.a must be the source's embedding.
func (s *Scorer) rank(rows []float32, columns int, w []float64, of Pair, logit float64) float64 {
	above, beside := 0, 0
	count := func(v uint32) {
		if v == of.Source || v == of.Target {
			return
		}
		s.b = widen(s.b[:0], rows[int(v)*columns:][:columns])
		// An edge matters only where the vertex would count, and looking for one takes longer.
		switch x := s.decoder.Score(w, s.a, s.b, 0); {
		case x < logit || s.of.joined(of.Source, v, false):
		case x == logit:
			beside++
		default:
			above++
		}
	}
	candidates := s.of.candidates(nil)
	if s.of.Ranks == All {
		for i := range candidates {
			count(s.of.candidate(nil, i))
		}
	} else {
		draws := s.of.negatives.With(0).With(uint64(of.Source)).With(uint64(of.Target)).With(ranked).Draws()
		for range s.of.Ranks {
			count(s.of.candidate(nil, int(draws.Below(uint64(candidates)))))
		}
	}
	return 1 + float64(above) + float64(beside)/2
}
