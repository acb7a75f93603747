package link

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// Pairs of a graph that is no graph of triples may have a given split, too: the numbers of edges say
// it (see graph.GivenPairs). They have no relations here, so that decoders, negatives and the words
// of a step are those of any pairs.

// Divided reports whether pairs without relations have a given split.
func (s *Spec) Divided() bool { return s.Given != nil && s.Relations == 0 }

// Triples returns how many relations the triples of a dataset have that the pairs can be of; 0: its
// edges must be none.
func (s *Spec) Triples() int {
	if s.Divided() {
		return graph.PairRelations
	}
	return s.Relations
}

// divided adds the edges that end at a vertex to their parts, and the pairs to compare with.
func (p *Pairs) divided(sources []int32, numbers []float32, target uint32) {
	for i, u := range sources {
		of := Pair{Source: uint32(u), Target: target}
		relation, part, reversed := graph.TripleOf(int(numbers[i]), graph.PairRelations)
		switch {
		case of.Source == target || reversed:
		case relation == graph.PairNegative:
			p.Against[part] = append(p.Against[part], of)
		default:
			if _, leads := p.draw(of.Source, target); leads || !p.numbered(target, of.Source, int(numbers[i])) {
				p.Of[part] = append(p.Of[part], of)
			}
		}
	}
}

// compared sorts the pairs to compare with. It returns an error if pairs are to be compared with
// some, and there are none.
func (p *Pairs) compared() error {
	for part := graph.Validation; part <= graph.Test; part++ {
		slices.SortFunc(p.Against[part], compare)
		if p.Ranks == GivenOfSource && len(p.Of[part]) > 0 && len(p.Against[part]) > 0 && !slices.ContainsFunc(p.Of[part], func(of Pair) bool { return len(p.ofSource(part, of.Source)) > 0 }) {
			return fmt.Errorf("no edge of %s has a given pair of its source, which {link.ranks}=given-source compares it with: give {link.ranks}=given", [...]string{graph.Validation: "validation", graph.Test: "test"}[part])
		}
		if len(p.given(part)) > 0 || p.Ranks >= All || len(p.Of[part]) == 0 {
			continue
		}
		return errors.New("the dataset has no pairs to compare its edges of validation and test with, which {link.ranks}=given or given-source asks for: choose a dataset that has some")
	}
	return nil
}

// given returns the pairs of the dataset that those of a part are compared with; nil: they are drawn.
func (p *Pairs) given(part graph.Mark) []Pair {
	if p.Ranks >= All || part == graph.Train {
		return nil
	}
	return p.Against[part]
}

// ofSource returns the pairs to compare with that have a source, of a part.
func (p *Pairs) ofSource(part graph.Mark, source uint32) []Pair {
	all := p.Against[part]
	first, _ := slices.BinarySearchFunc(all, Pair{Source: source}, compare)
	n := 0
	for _, of := range all[first:] {
		if of.Source != source {
			break
		}
		n++
	}
	return all[first:][:n]
}

// isEdge reports whether an edge of a number is one that is learnt or found out.
func (p *Pairs) isEdge(number int) bool {
	if p.Relation != nil {
		return number == p.Relation.Number
	}
	relation, _, reversed := graph.TripleOf(number, graph.PairRelations)
	return relation == graph.PairEdge && !reversed
}

// numbered reports whether the graph has an edge of a number.
func (p *Pairs) numbered(source, target uint32, number int) bool {
	sources, numbers := p.whole.Row(int(target))
	i, _ := slices.BinarySearch(sources, int32(source))
	for ; i < len(sources) && sources[i] == int32(source); i++ {
		if int(numbers[i]) == number {
			return true
		}
	}
	return false
}

// heldOut reports whether an edge between two vertices, in either direction, is for validation or
// test.
func (p *Pairs) heldOut(a, b uint32) bool {
	for part := graph.Validation; part <= graph.Test; part++ {
		if number := graph.PairNumber(part, false); p.numbered(a, b, number) || p.numbered(b, a, number) {
			return true
		}
	}
	return false
}
