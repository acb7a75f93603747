package graph

import (
	"reflect"
	"strings"
	"testing"
)

// The types of edges with a given split are kept as those of triples, and known from them.
func TestTypesOfAGivenSplit(t *testing.T) {
	for _, features := range []int{0, 7} {
		types := GivenPairs(20, features, [3]uint64{30, 4, 5}, 9)
		text, err := types.Text()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseTypes(text, 20, max(1, features))
		if err != nil || !reflect.DeepEqual(again, types) {
			t.Errorf("%s is read as %+v, %v", text, again, err)
		}
		if !types.Triples() || types.Numbers() != 8 || types.Seen() != 4 || types.Vertices[0].Own() != features {
			t.Errorf("%d numbers, %d of them seen, %d features", types.Numbers(), types.Seen(), types.Vertices[0].Own())
		}
		for part := Train; part <= Test; part++ {
			for _, negative := range []bool{false, true} {
				n := PairNumber(part, negative)
				relation, of, reversed := TripleOf(n, PairRelations)
				if of != part || reversed || (relation == PairNegative) != negative || (n < types.Seen()) != (part == Train) {
					t.Errorf("the number %d is of relation %d in part %d", n, relation, of)
				}
			}
		}
	}
	for _, text := range []string{
		`{"vertices":[{"name":"v","vertices":2,"first_feature":0,"features":1}],"relations":[{"name":"a","edges":1},{"name":"b","edges":1}],"pairs":true}`,
		`{"vertices":[{"name":"v","vertices":2,"first_feature":0,"features":1}],"relations":[{"name":"a","edges":1}],"given":[1,1,1],"pairs":true}`,
	} {
		if _, err := ParseTypes(text, 2, 1); err == nil || !strings.Contains(err.Error(), "edges with a given split have") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
