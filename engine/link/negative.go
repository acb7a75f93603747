package link

import (
	"sort"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// Where the negatives of a pair come from. All are drawn by keys, so that they are the same
// whoever computes the pair.
const (
	Uniform   = "uniform" // any vertices, for each pair others
	PerSource = "source"  // any vertices, the same for all pairs of a source
	InBatch   = "batch"   // targets of other pairs of the step
)

// Froms are the places that negatives come from. The first is that of recipes that name none.
var Froms = []string{Uniform, PerSource, InBatch}

// tries bounds how many vertices are drawn for one negative: a vertex that is joined to nearly
// all others may get a true pair as a negative.
const tries = 64

// negative returns the number-th vertex of a region that stands in place of a pair's target in an
// epoch, or in evaluations, which are epoch 0. In epochs edges of validation and test count as none,
// since nothing may be learnt of them.
func (p *Pairs) negative(of Pair, epoch uint64, number int, in *region) (v uint32) {
	key := p.negatives.With(epoch).With(uint64(of.Source)).With(uint64(of.Target)).With(uint64(number))
	return p.apart(key, of.Source, epoch, in)
}

// against returns the negative that a pair is compared with in all evaluations.
func (p *Pairs) against(of Pair) Pair {
	if p.Relations > 0 {
		return p.corrupt(of, 0, 0, nil)
	}
	return Pair{Source: of.Source, Target: p.negative(of, 0, 0, nil)}
}

// apart draws a vertex of a region that has no edge with a source, as far as is known in an epoch.
func (p *Pairs) apart(key keyed.Key, source uint32, epoch uint64, in *region) (v uint32) {
	draws := key.Draws()
	for range tries {
		v = p.candidate(in, int(draws.Below(uint64(p.candidates(in)))))
		if v != source && !p.joined(source, v, epoch > 0) {
			break
		}
	}
	return v
}

// candidates returns how many vertices may stand in place of a pair's target.
func (p *Pairs) candidates(r *region) int {
	switch {
	case r != nil:
		return r.count
	case p.Relation != nil:
		return len(p.targets)
	}
	return p.whole.Vertices()
}

// candidate returns one of them. Where a region is all of the graph they are in the graph's order.
func (p *Pairs) candidate(r *region, i int) uint32 {
	if r != nil {
		run := sort.SearchInts(r.ahead, i+1) - 1 // runs without candidates come before the next one
		i = int(r.runs[run].First) + i - r.ahead[run]
	}
	if p.Relation != nil {
		return p.targets[i]
	}
	return uint32(i)
}

// joined reports whether there is an edge between two vertices; seen: one that training may see.
func (p *Pairs) joined(a, b uint32, seen bool) bool {
	if !p.edge(a, b) && !p.edge(b, a) {
		return false
	}
	return !seen || !p.held(a, b)
}

// negative returns the number-th negative of a pair of the step. All vertices that come lie in the
// region of its source: those in a batch are targets of pairs that do.
func (b *Batch) negative(of Pair, number int) uint32 {
	in := b.within.of(of.Source)
	switch b.of.From {
	case PerSource:
		return b.of.apart(b.of.negatives.With(b.epoch).With(uint64(of.Source)).With(uint64(number)), of.Source, b.epoch, in)
	case InBatch:
		draws := b.of.negatives.With(b.epoch).With(uint64(of.Source)).With(uint64(of.Target)).With(uint64(number)).With(inBatch).Draws()
		pairs := b.from(in)
		for range tries {
			v := pairs[draws.Below(uint64(len(pairs)))].Target
			if v != of.Source && !b.of.joined(of.Source, v, true) {
				return v
			}
		}
	}
	return b.of.negative(of, b.epoch, number, in) // a step may have no other target
}

// inBatch and ranked separate draws of one pair for different uses.
const (
	inBatch = 1 << 32
	ranked  = 1<<32 + 1
	ofHead  = 1<<32 + 2
)
