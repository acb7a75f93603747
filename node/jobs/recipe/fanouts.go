package recipe

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/node/api"
)

// fanouts sets the fan-outs of a recipe: those that a request gives by relation, and for all other
// relations those that it gives without a name.
func fanouts(to *recipe.Recipe, r api.TrainRequest, d plan.Dataset) error {
	if len(r.RelationFanout) == 0 {
		return nil
	}
	types, err := graph.ParseTypes(d.About.Types, d.About.Vertices, d.About.Features)
	if err != nil {
		return err
	}
	if types == nil {
		return fmt.Errorf("{fanout} names relations, and the dataset %s has none: give numbers alone, such as 10,5", d.Name)
	}
	of := make([][]int, len(types.Relations))
	for _, name := range slices.Sorted(maps.Keys(r.RelationFanout)) { // so that the same one is refused first
		i, err := types.Place(name)
		if err != nil {
			return fmt.Errorf("{fanout} names %s, and %w", name, err)
		}
		if of[i] != nil {
			return fmt.Errorf("{fanout} names the relation %s twice: name it once", types.Relations[i])
		}
		of[i] = r.RelationFanout[name]
	}
	for i := range of {
		if of[i] == nil {
			of[i] = r.Fanout
		}
		if len(of[i]) == 0 {
			return fmt.Errorf("{fanout} leaves out the relation %s: name it too, or give numbers for all others first, such as 10,5,%s=20/10", types.Relations[i], types.Relations[0].Name)
		}
		if len(of[i]) != len(of[0]) {
			return fmt.Errorf("{fanout} has %s for the relation %s and %d for %s: give one number for each hop", recipe.Count(len(of[i]), "number"), types.Relations[i], len(of[0]), types.Relations[0])
		}
	}
	return to.FanEach(of)
}

// Relation returns the place of the relation of a dataset's triples that a request names; nil if it
// names none.
func Relation(d plan.Dataset, name string) (*int, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // pairs have no relation
	}
	types, err := graph.ParseTypes(d.About.Types, d.About.Vertices, d.About.Features)
	if err != nil {
		return nil, err
	}
	if !types.Triples() || types.Pairs {
		return nil, fmt.Errorf("--relation is %s, and dataset %s has no triples: leave it out", name, d.Name)
	}
	place, err := types.Place(name)
	if err != nil {
		return nil, fmt.Errorf("--relation: %w", err)
	}
	return &place, nil
}
