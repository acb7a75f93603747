package link

import (
	"cmp"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// WordsOfPair is how many words of a group a pair takes: the rows of its vertices among the
// group's, and 1, or 0 for a negative, plus twice the relation.
const WordsOfPair = 3

// yes is the bit of a word that a negative lacks.
const yes = 1

// A Batch is the pairs of one step. All nodes of a run make the same one. It keeps its memory.
type Batch struct {
	of      *Pairs
	within  *Regions // nil: all pairs are learnt
	epoch   uint64
	sources []uint32
	pairs   []Pair // by source, then by target, then by relation
	ends    map[uint32]struct{}
	at      map[uint32]int32 // of the vertices of a group: their rows
	marked  []bool           // of a block's vertices: they are among ends
}

// Begin begins a step with some training pairs, which are given by their places. Those that lie
// outside of regions are left out: the step is one of the others, and so are its loss, its negatives
// and what is pruned.
func (b *Batch) Begin(of *Pairs, places []uint32, epoch int, within *Regions) {
	if b.at == nil {
		b.at, b.ends = map[uint32]int32{}, map[uint32]struct{}{}
	}
	b.of, b.within, b.epoch = of, within, uint64(epoch)
	b.sources, b.pairs = b.sources[:0], b.pairs[:0]
	clear(b.ends)
	clear(b.at)
	for _, i := range places {
		pair := of.Of[graph.Train][i]
		if within != nil && !within.Has(pair) {
			continue
		}
		if _, known := b.at[pair.Source]; !known {
			b.at[pair.Source] = 0
			b.sources = append(b.sources, pair.Source)
		}
		b.pairs = append(b.pairs, pair)
		b.ends[pair.Source], b.ends[pair.Target] = struct{}{}, struct{}{}
	}
	slices.SortFunc(b.pairs, compare)
}

// compare orders pairs by source, then by target, then by relation.
func compare(a, b Pair) int {
	return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Relation, b.Relation))
}

// Count returns how many pairs the step learns. All nodes find the same.
func (b *Batch) Count() int { return len(b.pairs) }

// Sources returns the sources of the pairs, each once, in the order of the step. Who computes a
// source computes all of its pairs.
func (b *Batch) Sources() []uint32 { return b.sources }

// Ends appends the vertices at which the pairs of some sources and their negatives end, each
// once, and the words of these pairs.
func (b *Batch) Ends(to []uint32, words []int32, sources []uint32) (vertices []uint32, all []int32) {
	clear(b.at)
	row := func(v uint32) int32 {
		i, known := b.at[v]
		if !known {
			i = int32(len(to))
			b.at[v] = i
			to = append(to, v)
		}
		return i
	}
	for _, source := range sources {
		i, _ := slices.BinarySearchFunc(b.pairs, Pair{Source: source}, compare)
		for ; i < len(b.pairs) && b.pairs[i].Source == source; i++ {
			of := b.pairs[i]
			first, relation := row(source), 2*int32(of.Relation)
			words = append(words, first, row(of.Target), relation|yes)
			for n := range b.of.Negatives {
				if b.of.Relations > 0 {
					no := b.of.corrupt(of, b.epoch, n, b.within.of(of.Source))
					words = append(words, row(no.Source), row(no.Target), relation)
					continue
				}
				words = append(words, first, row(b.negative(of, n)), 0)
			}
		}
	}
	return to, words
}

// Prune implements sample.Pruner. It takes the pairs of the step, in both directions, out of a
// block: what is to be found out must not pass along itself. Other relations between the same
// vertices stay, unless the model can't tell them apart.
func (b *Batch) Prune(block *sample.Block, related bool) {
	b.marked = slices.Grow(b.marked[:0], len(block.Vertices))
	some := false
	for _, v := range block.Vertices {
		_, is := b.ends[v]
		b.marked, some = append(b.marked, is), some || is
	}
	if !some {
		return
	}
	triples := b.of.Relations > 0
	block.Remove(func(target, source, entry int) bool {
		if !b.marked[target] || !b.marked[source] || target == source && !triples {
			return false
		}
		u, v := block.Vertices[source], block.Vertices[target]
		switch of := b.of.Relation; {
		case triples && related:
			return b.hasTriple(u, v, int(block.Values[entry]))
		case of != nil && related && !of.has(int(block.Values[entry])):
			return false
		}
		return b.has(u, v) || b.has(v, u)
	})
}

// has reports whether a pair, of any relation, is one of the step's.
func (b *Batch) has(source, target uint32) bool {
	i, _ := slices.BinarySearchFunc(b.pairs, Pair{Source: source, Target: target}, compare)
	return i < len(b.pairs) && b.pairs[i].Source == source && b.pairs[i].Target == target
}

// hasTriple reports whether the edge from u to v, which has this number in place of a relation, is
// for a triple of the step.
func (b *Batch) hasTriple(u, v uint32, number int) bool {
	relation, _, reversed := graph.TripleOf(number, b.of.Relations)
	if reversed {
		u, v = v, u
	}
	_, is := slices.BinarySearchFunc(b.pairs, Pair{u, v, uint32(relation)}, compare)
	return is
}

// StepBytes returns about how much memory a step of so many pairs takes for them.
func (s *Spec) StepBytes(pairs int) uint64 {
	const entry = 48 // of a map
	ends := uint64(pairs) * uint64(2+s.Negatives)
	return uint64(pairs)*(pairBytes+4+2*entry) + ends*(4+4*WordsOfPair+entry)
}
