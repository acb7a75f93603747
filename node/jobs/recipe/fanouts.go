package recipe

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
		i, err := relation(types, name)
		if err != nil {
			return err
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

// relation returns the place of the relation that is called so, by its name alone or with the types
// between which it leads.
func relation(types *graph.Types, name string) (int, error) {
	found := -1
	for i, r := range types.Relations {
		switch {
		case r.String() == name:
			return i, nil
		case r.Name != name:
		case found >= 0:
			return 0, fmt.Errorf("{fanout} names %s, and both %s and %s are called so: give the whole name", name, types.Relations[found], r)
		default:
			found = i
		}
	}
	if found < 0 {
		var names []string
		for _, r := range types.Relations {
			names = append(names, r.Name)
		}
		return 0, fmt.Errorf("{fanout} names the relation %.80s, and the dataset has %s", name, strings.Join(names, ", "))
	}
	return found, nil
}
