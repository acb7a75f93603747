package graph

import "fmt"

// A graph of triples is a typed graph whose edges have a given split: each triple of head, relation
// and tail is for training, validation or test. The number that an edge has in place of a
// relation says which part, so that all that carries relations carries the split too. Of R relations,
// the numbers are, in this order, R each:
//
//	a triple for training, from head to tail
//	the same from tail to head, for messages
//	a triple for validation, from head to tail
//	a triple for test, from head to tail
//
// Messages pass along edges of the first two kinds only.
const (
	ahead = iota
	back
	ofValidation
	ofTest
	tripleKinds
)

// Triples reports whether edges are triples with a given split.
func (t *Types) Triples() bool { return t != nil && t.Given != nil }

// Numbers returns how many numbers edges have in place of relations.
func (t *Types) Numbers() int {
	if t.Given != nil {
		return tripleKinds * len(t.Relations)
	}
	return len(t.Relations)
}

// Seen returns how many relations models tell apart.
func (t *Types) Seen() int { return seen(t.Numbers(), t.Given != nil) }

func seen(numbers int, given bool) int {
	if given {
		return numbers / tripleKinds * ofValidation
	}
	return numbers
}

// Seen returns how many relations models tell apart: edges with a number from this one on are not
// for messages.
func (r *Related) Seen() int { return seen(r.Count, r.Given) }

// Triples returns how many relations triples have whose split is given; 0: there are none.
func (r *Related) Triples() int {
	if !r.Given {
		return 0
	}
	return r.Count / tripleKinds
}

// TripleNumber returns the number of an edge for a triple of one of so many relations, which is in
// a part of the split; reversed: of the edge from tail to head of one for training.
func TripleNumber(relation, relations int, part Mark, reversed bool) int {
	kind := ahead
	switch {
	case reversed:
		kind = back
	case part == Validation:
		kind = ofValidation
	case part == Test:
		kind = ofTest
	}
	return kind*relations + relation
}

// TripleOf is the inverse of TripleNumber.
func TripleOf(number, relations int) (relation int, part Mark, reversed bool) {
	part = Train
	switch number / relations {
	case back:
		reversed = true
	case ofValidation:
		part = Validation
	case ofTest:
		part = Test
	}
	return number % relations, part, reversed
}

// checkGiven returns an error unless the types can be those of triples.
func (t *Types) checkGiven() error {
	switch {
	case t.checkPairs() != nil:
		return t.checkPairs()
	case t.Given == nil:
		return nil
	case len(t.Vertices) != 1:
		return fmt.Errorf("triples with a given split have %d types of vertices, and may have one", len(t.Vertices))
	case t.Numbers() > MaxRelations:
		return fmt.Errorf("triples with a given split have %d relations, and may have %d: leave some out", len(t.Relations), MaxRelations/tripleKinds)
	}
	for _, n := range t.Given {
		if n > 1<<47 {
			return fmt.Errorf("there are %d triples in a part of the split, which are too many", n)
		}
	}
	return nil
}
