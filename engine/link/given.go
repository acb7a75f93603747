package link

import (
	"context"
	"math"
	"sort"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/metric"
)

// addGiven adds the scores of the pairs that those of a part are compared with, if these are given.
func (s *Scorer) addGiven(ctx context.Context, to *metric.Ranking, part graph.Mark, rows []float32, columns int, w []float64) error {
	score, without := make([]float32, 1), []int32{metric.Without}
	for i, of := range s.of.given(part) {
		if i%lookEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		score[0] = float32(s.logit(rows, columns, w, of))
		if err := to.Add(score, without); err != nil {
			return err
		}
	}
	return nil
}

// rankGiven counts the ranks of pairs among given ones. The scores of both ascend, in the form in
// which rankings keep them.
func (s *Scorer) rankGiven(r *Score, given, pairs []uint32) {
	for _, score := range pairs {
		if score == math.MaxUint32 { // it is no number
			s.countGiven(r, len(given), 0)
			continue
		}
		least := sort.Search(len(given), func(i int) bool { return given[i] >= score })
		beside := sort.Search(len(given)-least, func(i int) bool { return given[least+i] > score })
		s.countGiven(r, len(given)-least-beside, beside)
	}
}

// rankOfSource counts the rank of a scored pair among the given ones of its source, if there are
// some, and returns how many ranks that is.
func (s *Scorer) rankOfSource(r *Score, part graph.Mark, rows []float32, columns int, w []float64, of Pair, score float64) int {
	given := s.of.ofSource(part, of.Source)
	if len(given) == 0 {
		return 0
	}
	above, beside := 0, 0
	for _, no := range given {
		switch x := s.logit(rows, columns, w, no); {
		case x < score:
		case x == score:
			beside++
		default:
			above++
		}
	}
	s.countGiven(r, above, beside)
	return 1
}

// countGiven counts the rank of a pair with so many given ones above and beside it. As the Open Graph
// Benchmark has it, equal scores share the mean of their ranks, and a pair is a hit only if it would
// be one behind all that are equal.
func (s *Scorer) countGiven(r *Score, above, beside int) {
	r.Reciprocal += 1 / (1 + float64(above) + float64(beside)/2)
	for j, most := range s.of.HitsAt() {
		if 1+above+beside <= most {
			r.Hits[j]++
		}
	}
}
