package link

import (
	"cmp"
	"context"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// Triples are pairs with a relation, whose split is given: the numbers of edges say it (see
// graph.Types).

// triples adds the triples that end at a vertex to their parts. Edges back are left out: they are
// there for messages alone.
func (p *Pairs) triples(sources []int32, numbers []float32, target uint32) {
	for i, u := range sources {
		relation, part, reversed := graph.TripleOf(int(numbers[i]), p.Relations)
		if !reversed {
			p.Of[part] = append(p.Of[part], Pair{uint32(u), target, uint32(relation)})
		}
	}
}

// known finds what triples of any part there are: of a head and a relation the tails, and of a tail
// and a relation the heads. Each triple is there once.
type known struct{ tails, heads []Pair }

// bytes returns how much memory it takes.
func (k *known) bytes() uint64 { return pairBytes * uint64(cap(k.tails)+cap(k.heads)) }

// byHead orders triples by head, then by relation, then by tail.
func byHead(a, b Pair) int {
	return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Relation, b.Relation), cmp.Compare(a.Target, b.Target))
}

// byTail orders triples by tail, then by relation, then by head.
func byTail(a, b Pair) int {
	return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Relation, b.Relation), cmp.Compare(a.Source, b.Source))
}

// index makes known of all parts.
func (p *Pairs) index(ctx context.Context) error {
	n := 0
	for _, of := range p.Of {
		n += len(of)
	}
	all := make([]Pair, 0, n)
	for _, of := range p.Of {
		all = append(all, of...)
	}
	slices.SortFunc(all, byHead)
	p.known.tails = slices.Compact(all)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.known.heads = slices.Clone(p.known.tails)
	slices.SortFunc(p.known.heads, byTail)
	return nil
}

// tailsOf returns the triples with the head and the relation of one.
func (k *known) tailsOf(of Pair) []Pair {
	first, _ := slices.BinarySearchFunc(k.tails, Pair{Source: of.Source, Relation: of.Relation}, byHead)
	n := 0
	for _, t := range k.tails[first:] {
		if t.Source != of.Source || t.Relation != of.Relation {
			break
		}
		n++
	}
	return k.tails[first:][:n]
}

// headsOf returns the triples with the tail and the relation of one.
func (k *known) headsOf(of Pair) []Pair {
	first, _ := slices.BinarySearchFunc(k.heads, Pair{Target: of.Target, Relation: of.Relation}, byTail)
	n := 0
	for _, t := range k.heads[first:] {
		if t.Target != of.Target || t.Relation != of.Relation {
			break
		}
		n++
	}
	return k.heads[first:][:n]
}

// has reports whether there is a triple; seen: one for training.
func (p *Pairs) has(of Pair, seen bool) bool {
	if !seen {
		_, is := slices.BinarySearchFunc(p.known.tails, of, byHead)
		return is
	}
	// The edges from one vertex to another lie together, by their numbers: those of training first.
	sources, numbers := p.whole.Row(int(of.Target))
	i, _ := slices.BinarySearch(sources, int32(of.Source))
	for ; i < len(sources) && sources[i] == int32(of.Source) && numbers[i] <= float32(of.Relation); i++ {
		if numbers[i] == float32(of.Relation) {
			return true
		}
	}
	return false
}

// corrupt returns the number-th negative of a triple in an epoch, or in evaluations, which are
// epoch 0: either its head or its tail is another vertex, each as often, as Bordes et al. (2013)
// drew them. It is no triple, as far as is known in the epoch, and lies in a region.
func (p *Pairs) corrupt(of Pair, epoch uint64, number int, in *region) Pair {
	key := p.negatives.With(epoch).With(uint64(of.Source)).With(uint64(of.Target)).With(uint64(of.Relation)).With(uint64(number))
	draws, no := key.Draws(), of
	head := draws.Next()&1 == 0
	for range tries {
		if v := p.candidate(in, int(draws.Below(uint64(p.candidates(in))))); head {
			no.Source = v
		} else {
			no.Target = v
		}
		if no != of && !p.has(no, epoch > 0) {
			break
		}
	}
	return no
}
