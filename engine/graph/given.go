package graph

import "fmt"

// A graph whose edges are no triples may have a given split, too: edges of validation and test, and
// pairs of vertices that evaluations compare these with. It is stored as triples with two relations
// are (see the numbers of triples), so that whatever leaves triples of validation and test out of
// messages leaves these edges and pairs out, too. Only Types.Pairs distinguishes it from triples.
const (
	PairEdge      = iota // the relation of edges
	PairNegative         // that of pairs that are compared with edges of validation or test
	PairRelations        // how many there are
)

// onlyType is the name of the one type of vertices of such a graph.
const onlyType = "vertex"

// GivenPairs returns the types of a graph of so many vertices whose edges have a given split. given
// is how many edges each part has, and negatives how many pairs there are to compare with. Without
// features of their own, vertices have a column of ones.
func GivenPairs(vertices uint64, features int, given [3]uint64, negatives uint64) *Types {
	t := &Types{
		Vertices:  []VertexType{{Name: onlyType, Vertices: vertices, Features: max(1, features), Bare: features == 0}},
		Relations: make([]Relation, PairRelations),
		Given:     &given, Pairs: true,
	}
	t.Relations[PairEdge] = Relation{Source: onlyType, Name: "edge", Target: onlyType, Edges: given[0]}
	t.Relations[PairNegative] = Relation{Source: onlyType, Name: "negative", Target: onlyType, Edges: negatives}
	return t
}

// PairNumber returns the number of an edge of a part of the split; negative: of a pair to compare
// with.
func PairNumber(part Mark, negative bool) int {
	relation := PairEdge
	if negative {
		relation = PairNegative
	}
	return TripleNumber(relation, PairRelations, part, false)
}

// checkPairs returns an error unless the types can be those of pairs, if they say so.
func (t *Types) checkPairs() error {
	if t.Pairs && (t.Given == nil || len(t.Relations) != PairRelations) {
		return fmt.Errorf("edges with a given split have %d relations, and there are %d", len(t.Relations), PairRelations)
	}
	return nil
}
