package link

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// A Relation is the one whose edges are learnt in a graph with types. Their targets alone come as
// negatives, and edges of other relations are for messages alone.
type Relation struct {
	Name   string `json:"name"`
	Number int    `json:"number"`         // of its edges
	Same   []int  `json:"same,omitempty"` // of relations whose edges tell the same, most of which lead back
	Edges  uint64 `json:"edges"`          // in the source
}

// backs begin the names of relations that lead back: our own, and those of PyG and DGL.
var backs = []string{"rev-", "rev_", "rev."}

// stem returns a name without what says that edges lead back. They may have been led back twice.
func stem(name string) string {
	for {
		i := slices.IndexFunc(backs, func(back string) bool { return strings.HasPrefix(name, back) && name != back })
		if i < 0 {
			return name
		}
		name = name[len(backs[i]):]
	}
}

// RelationOf returns the relation of a graph that is called so.
func RelationOf(types *graph.Types, name string) (*Relation, error) {
	at, err := types.Place(name)
	if err != nil {
		return nil, err
	}
	of := types.Relations[at]
	r := &Relation{Name: of.String(), Number: at, Edges: of.Edges}
	for i, other := range types.Relations {
		ends := other.Source == of.Source && other.Target == of.Target || other.Source == of.Target && other.Target == of.Source
		if i != at && ends && stem(other.Name) == stem(of.Name) {
			r.Same = append(r.Same, i)
		}
	}
	return r, nil
}

// In returns the relation as a graph with these types has it, nil if it names none. apart means that the
// model that has learnt it tells relations apart, which it does by their numbers.
func (r *Relation) In(types *graph.Types, apart bool) (*Relation, error) {
	if types == nil {
		return nil, fmt.Errorf("the model has learnt edges of %s, and the dataset has no relations: choose one with the same types as that on which it was trained", r.Name)
	}
	of, err := RelationOf(types, r.Name)
	if err != nil {
		return nil, fmt.Errorf("the model has learnt edges of one relation, and %w: choose a dataset with the same types as that on which it was trained", err)
	}
	if apart && of.Number != r.Number {
		return nil, fmt.Errorf("the model tells relations apart by their order, and has learnt %s as number %d, which it is not in the dataset: choose one that lists its relations as that on which it was trained", r.Name, r.Number+1)
	}
	return of, nil
}

// has reports whether edges of a number are those of the relation, or tell the same.
func (r *Relation) has(number int) bool { return number == r.Number || slices.Contains(r.Same, number) }

func (r *Relation) check(s *Spec) error {
	switch {
	case r == nil:
		return nil
	case s.Divided():
		return errors.New("{link.relation} is for graphs with types, and the edges of the dataset have a given split and no types: leave it out")
	case s.Relations > 0:
		return errors.New("{link.relation} is for graphs with types, and the dataset has triples, all of whose relations are learnt: leave it out")
	case r.Name == "":
		return errors.New("{link.relation} is empty: name a relation of the dataset")
	case slices.ContainsFunc(append([]int{r.Number}, r.Same...), func(i int) bool { return i < 0 || i >= graph.MaxRelations }) || slices.Contains(r.Same, r.Number):
		return fmt.Errorf("{link.relation} is %s, which has the number %d, and its edges stand again under %v: name a relation of the dataset", r.Name, r.Number, r.Same)
	}
	return nil
}
