package link

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// tripleRanks is the memory of ranking triples among all vertices.
type tripleRanks struct {
	threads               Threads
	sources, scores, tile []float32
	weights               []float32
}

// Bounds of what is scored at once: numbers, and questions, each of which has a score for each
// vertex.
const (
	rankNumbers   = 1 << 22
	rankQuestions = 64
	rankTargets   = 4096 // vertices, as a product keeps those that it is of
)

// questions returns how many questions are scored at once.
func (p *Pairs) questions() int {
	return max(1, min(rankQuestions, rankNumbers/max(1, p.whole.Vertices())))
}

// rankBytes returns how much memory ranking takes beside the embeddings.
func (p *Pairs) rankBytes() uint64 {
	if p.Relations == 0 || p.Ranks != All {
		return 0
	}
	size, _ := Size(p.Decoder, p.Width, p.Relations)
	q, tile := uint64(p.questions()), uint64(min(rankTargets, p.whole.Vertices()))
	return 4 * (q*uint64(p.whole.Vertices()+p.Width) + q*tile + tile*uint64(p.Width) + uint64(size))
}

// rankTriples adds the ranks of triples to a score: that of the tail among all tails of its head
// and relation, and that of the head among all heads. Known triples of any part are left out, as
// Bordes et al. (2013) filtered them, and equal scores share the mean of their ranks.
func (s *Scorer) rankTriples(ctx context.Context, of []Pair, rows []float32, columns int, w []float64, r *Score) error {
	if s.of.Ranks != All {
		return s.rankDrawn(ctx, of, rows, columns, w, r)
	}
	t := &s.triples
	t.weights = t.weights[:0]
	for _, x := range w {
		t.weights = append(t.weights, float32(x))
	}
	blocks, err := NewBlocks(s.of.Decoder, columns, s.of.Relations, t.weights, t.threads)
	if err != nil {
		return err
	}
	defer blocks.Close()
	vertices, most := s.of.whole.Vertices(), s.of.questions()
	if len(t.scores) != most*vertices {
		t.scores, t.sources = make([]float32, most*vertices), make([]float32, most*columns)
		t.tile = make([]float32, most*min(rankTargets, vertices))
	}
	for first := 0; first < 2*len(of); first += most {
		n := min(most, 2*len(of)-first)
		sources := tensor.OverF32(n, columns, t.sources[:n*columns])
		for i := range n {
			question, tails := questionOf(of, first+i)
			end := question.Source
			if !tails {
				end = question.Target // decoders know no direction
			}
			copy(t.sources[i*columns:][:columns], rows[int(end)*columns:])
			blocks.Begin(sources.RowRange(i, 1), int(question.Relation))
		}
		for at := 0; at < vertices; at += rankTargets {
			m := min(rankTargets, vertices-at)
			blocks.Score(ctx, tensor.OverF32(n, m, t.tile[:n*m]), sources, tensor.OverF32(m, columns, rows[at*columns:][:m*columns]))
			for i := range n {
				copy(t.scores[i*vertices+at:][:m], t.tile[i*m:])
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for i := range n {
			scores := t.scores[i*vertices:][:vertices]
			if question, tails := questionOf(of, first+i); tails {
				s.count(r, rankAmong(scores, question.Target, s.of.known.tailsOf(question), func(t Pair) uint32 { return t.Target }))
			} else {
				s.count(r, rankAmong(scores, question.Source, s.of.known.headsOf(question), func(t Pair) uint32 { return t.Source }))
			}
		}
	}
	return nil
}

// questionOf returns the triple that a question is about, and whether it asks for tails.
func questionOf(of []Pair, question int) (triple Pair, tails bool) {
	return of[question/2], question%2 == 0
}

// rankAmong returns the rank of a vertex by the scores of all, without others that are known to be
// right. A score that is no number is below none, and the answer's own is above none.
func rankAmong(scores []float32, answer uint32, known []Pair, vertex func(Pair) uint32) float64 {
	above, beside, x := 0, 0, scores[answer]
	count := func(y float32, n int) {
		switch {
		case y < x:
		case y == x:
			beside += n
		default:
			above += n
		}
	}
	for _, y := range scores {
		count(y, 1)
	}
	count(x, -1)
	for _, t := range known {
		if v := vertex(t); v != answer {
			count(scores[v], -1)
		}
	}
	return 1 + float64(above) + float64(beside)/2
}

// rankDrawn is rankTriples among vertices that are drawn, with replacement, the same in all
// evaluations.
func (s *Scorer) rankDrawn(ctx context.Context, of []Pair, rows []float32, columns int, w []float64, r *Score) error {
	for i := range 2 * len(of) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		question, tails := questionOf(of, i)
		purpose := uint64(ranked)
		if !tails {
			purpose = ofHead
		}
		draws := s.of.negatives.With(0).With(uint64(question.Source)).With(uint64(question.Target)).With(uint64(question.Relation)).With(purpose).Draws()
		x := s.logit(rows, columns, w, question)
		above, beside := 0, 0
		for range s.of.Ranks {
			other := question
			if v := uint32(draws.Below(uint64(s.of.whole.Vertices()))); tails {
				other.Target = v
			} else {
				other.Source = v
			}
			// Whether a triple is known matters only where it would count.
			switch y := s.logit(rows, columns, w, other); {
			case other == question || y < x || s.of.has(other, false):
			case y == x:
				beside++
			default:
				above++
			}
		}
		s.count(r, 1+float64(above)+float64(beside)/2)
	}
	return nil
}
