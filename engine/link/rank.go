package link

// All is the number of Spec.Ranks that stands for all vertices.
const All = -1

// JobRanks is how many vertices a job that says nothing of it ranks each pair among.
const JobRanks = 100

// HitsAt are the ranks up to which a pair is a hit.
var HitsAt = [3]int{1, 3, 10}

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
