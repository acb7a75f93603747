package link

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// A relation is found by its name, and edges that lead back by theirs.
func TestRelationsAndTheirEdgesBack(t *testing.T) {
	of := func(source, name, target string) graph.Relation {
		return graph.Relation{Source: source, Name: name, Target: target, Edges: 9}
	}
	types := &graph.Types{
		Vertices:  []graph.VertexType{{Name: "user"}, {Name: "item"}},
		Relations: []graph.Relation{of("user", "buys", "item"), of("item", "rev_buys", "user"), of("user", "sees", "item"), of("item", "rev-sees", "user"), of("user", "knows", "user"), of("user", "rev-x", "item"), of("item", "rev-buys", "user"), of("user", "rev-rev_buys", "item")},
	}
	for name, want := range map[string]Relation{
		"buys":                 {"user-buys-item", 0, []int{1, 6, 7}, 9},
		"rev_buys":             {"item-rev_buys-user", 1, []int{0, 6, 7}, 9},
		"user-sees-item":       {"user-sees-item", 2, []int{3}, 9},
		"item-rev-sees-user":   {"item-rev-sees-user", 3, []int{2}, 9},
		"knows":                {"user-knows-user", 4, nil, 9},
		"rev-x":                {"user-rev-x-item", 5, nil, 9},
		"sells":                {},
		"user-buys-user":       {},
		"user-rev_buys-item":   {},
		"item-rev_buys-user\n": {},
	} {
		got, err := RelationOf(types, name)
		if want.Name == "" {
			if err == nil || !strings.Contains(err.Error(), "no relation is called") {
				t.Errorf("%q: %v", name, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%q is %+v, want %+v: %v", name, got, want, err)
		}
	}
}

// typedPairs returns the pairs of one relation of the planted graph with types.
func typedPairs(t *testing.T) (p *Pairs, whole *sample.Topology) {
	t.Helper()
	src := enginetest.Typed("edited", "wrote", enginetest.Back+"wrote", enginetest.Back+"edited")
	whole, err := sample.NewTopology(enginetest.Cut(t, src, 4, ""))
	if err != nil {
		t.Fatal(err)
	}
	s := Default()
	s.Split = [3]float64{0.6, 0.2, 0.2}
	if s.Relation, err = RelationOf(src.Meta().Types, "wrote"); err != nil {
		t.Fatal(err)
	}
	if s.Relation.Number != 1 || !slices.Equal(s.Relation.Same, []int{2}) {
		t.Fatalf("the relation is %+v", s.Relation)
	}
	if p, err = New(t.Context(), s, 3, whole); err != nil {
		t.Fatal(err)
	}
	return p, whole
}

// The pairs are the edges of the relation, each in one part. Nothing else is held out, and only
// vertices at which the relation ends are negatives.
func TestPairsOfARelation(t *testing.T) {
	p, whole := typedPairs(t)
	left, targets, other := map[Pair]bool{}, map[uint32]bool{}, Pair{}
	for v := range whole.Vertices() {
		sources, numbers := whole.Relational().Row(v)
		for i, u := range sources {
			of := Pair{Source: uint32(u), Target: uint32(v)}
			switch int(numbers[i]) {
			case 1:
				left[of], targets[uint32(v)] = true, true
			case 0:
				other = of
			}
		}
	}
	all := len(left)
	if all == 0 || len(targets) == whole.Vertices() || other == (Pair{}) {
		t.Fatalf("%d edges end at %d vertices: nothing is shown", all, len(targets))
	}
	for part, pairs := range p.Of {
		if len(pairs) == 0 && part >= int(graph.Train) {
			t.Errorf("part %d has no pairs", part)
		}
		for _, of := range pairs {
			if !left[of] {
				t.Fatalf("%v of part %d is no edge of the relation, or in two parts", of, part)
			}
			delete(left, of)
			held := graph.Mark(part) != graph.Train
			for number, want := range []bool{false, held, held, false} {
				if p.Hidden(of.Target, of.Source, number) != want || p.Hidden(of.Source, of.Target, number) != want {
					t.Fatalf("%v of part %d: an edge of relation %d between them is not hidden: %v", of, part, number, want)
				}
			}
			for epoch := range uint64(3) {
				v := p.negative(of, epoch, 0, nil)
				no := Pair{Source: of.Source, Target: v}
				if !targets[v] || p.edge(no.Source, no.Target) && (epoch == 0 || !p.held(no.Source, no.Target)) {
					t.Fatalf("in epoch %d the negative of %v is %d", epoch, of, v)
				}
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("%d of %d edges are in no part", len(left), all)
	}
	if p.candidates(nil) != len(targets) {
		t.Errorf("%d vertices may be negatives, and the relation ends at %d", p.candidates(nil), len(targets))
	}
	if p.edge(other.Source, other.Target) && !slices.ContainsFunc(p.Of[:], func(of []Pair) bool { return slices.Contains(of, other) }) {
		t.Errorf("an edge of another relation, %v, counts as one of this", other)
	}
}

// A pair is ranked among the vertices at which the relation ends: all others score higher here.
func TestRanksOfARelation(t *testing.T) {
	p, whole := typedPairs(t)
	p.Ranks = All
	rows := make([]float32, whole.Vertices())
	for i := range rows {
		rows[i] = 9
	}
	for v := range whole.Vertices() {
		if _, numbers := whole.Relational().Row(v); slices.Contains(numbers, 1) {
			rows[v] = 1
		}
	}
	of := p.Of[graph.Test][0]
	rows[of.Source], rows[of.Target] = 1, 2
	s := NewScorer(p, CrossEntropies, Threads{})
	logit := s.logit(rows, 1, nil, of)
	if rank := s.rank(rows, 1, nil, of, logit); rank != 1 {
		t.Errorf("the pair has the rank %g", rank)
	}
	rows[of.Target] = 1
	if rank := s.rank(rows, 1, nil, of, s.logit(rows, 1, nil, of)); rank < 2 || rank > float64(p.candidates(nil)) {
		t.Errorf("among equals the pair has the rank %g", rank)
	}
	p.Ranks = 50
	rows[of.Target] = 2
	if rank := s.rank(rows, 1, nil, of, s.logit(rows, 1, nil, of)); rank != 1 {
		t.Errorf("among drawn vertices the pair has the rank %g", rank)
	}
}

func TestRelationsThatCantBe(t *testing.T) {
	for want, change := range map[string]func(s *Spec){
		"all of whose relations are learnt":      func(s *Spec) { s.Relations, s.Given = 3, new([3]uint64) },
		"which has the number -1":                func(s *Spec) { s.Relation.Number = -1 },
		"which has the number 8192":              func(s *Spec) { s.Relation.Number = graph.MaxRelations },
		"stand again under [-2]":                 func(s *Spec) { s.Relation.Same[0] = -2 },
		"stand again under [1]: name a relation": func(s *Spec) { s.Relation.Same[0] = 1 },
		"stand again under [8192]":               func(s *Spec) { s.Relation.Same[0] = graph.MaxRelations },
		"{link.relation} is empty":               func(s *Spec) { s.Relation.Name = "" },
	} {
		s := Default()
		s.Relation = &Relation{Name: "x", Number: 1, Same: []int{2}}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		change(s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	s := Default()
	s.Relation = &Relation{Name: "x"}
	whole, err := sample.NewTopology(enginetest.Cora(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), s, 1, whole); err == nil || !strings.Contains(err.Error(), "the edges of the dataset have no relations") {
		t.Error(err)
	}
}
