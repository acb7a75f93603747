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
	Number int    `json:"number"` // of its edges
	Back   int    `json:"back"`   // of the edges that lead back, which tell the same; -1: there are none
	Edges  uint64 `json:"edges"`  // in the source
}

// backs begin the names of relations that lead back: our own, and those of PyG and DGL.
var backs = []string{"rev-", "rev_", "rev."}

// RelationOf returns the relation of a graph that is called so.
func RelationOf(types *graph.Types, name string) (*Relation, error) {
	at, err := types.Place(name)
	if err != nil {
		return nil, err
	}
	of := types.Relations[at]
	r := &Relation{Name: of.String(), Number: at, Back: -1, Edges: of.Edges}
	for i, other := range types.Relations {
		if i != at && other.Source == of.Target && other.Target == of.Source && (leadsBack(other.Name, of.Name) || leadsBack(of.Name, other.Name)) {
			r.Back = i
		}
	}
	return r, nil
}

// leadsBack reports whether one name is that of edges back of another.
func leadsBack(name, of string) bool {
	return slices.ContainsFunc(backs, func(back string) bool { return strings.TrimPrefix(name, back) == of && name != of })
}

// has reports whether edges of a number are those of the relation, or lead back.
func (r *Relation) has(number int) bool { return number == r.Number || number == r.Back }

func (r *Relation) check(s *Spec) error {
	switch {
	case r == nil:
		return nil
	case s.Relations > 0:
		return errors.New("{link.relation} is for graphs with types, and the dataset has triples, all of whose relations are learnt: leave it out")
	case r.Number < 0 || r.Number >= graph.MaxRelations || r.Back < -1 || r.Back >= graph.MaxRelations || r.Back == r.Number:
		return fmt.Errorf("{link.relation} is %s, which has the number %d and leads back as %d: name a relation of the dataset", r.Name, r.Number, r.Back)
	}
	return nil
}
