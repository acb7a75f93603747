package recipe

import (
	"errors"
	"fmt"
	"math"
)

// FanEach sets the fan-outs of each relation, of as many hops each.
func (r *Recipe) FanEach(relations [][]int) error {
	r.Fanouts, r.Each = nil, nil
	if len(relations) == 0 {
		return nil
	}
	hops := len(relations[0])
	r.Fanouts, r.Each = make([]int, hops), make([][]int, hops)
	for h := range hops {
		for _, of := range relations {
			k := of[h]
			if k < 1 || k > math.MaxInt32-r.Fanouts[h] {
				return fmt.Errorf("{fanout} has %d for a relation: give how many neighbours are drawn, at least one, and of all relations together at most %d", k, math.MaxInt32)
			}
			r.Fanouts[h] += k
			r.Each[h] = append(r.Each[h], k)
		}
	}
	return nil
}

// checkEach returns an error unless the fan-outs by relation are those of the model's relations, and
// add up to those of the hops.
func (r *Recipe) checkEach() error {
	switch {
	case r.Each == nil:
		return nil
	case r.Model.Relations == 0:
		return fmt.Errorf("{fanout} has numbers for relations, and a %s does not tell them apart: take another model, or give numbers alone", r.Model.Model)
	case r.Links != nil && r.Links.Relations > 0:
		return errors.New("{fanout} has numbers for relations, and those of triples have none: give numbers alone")
	case len(r.Each) != len(r.Fanouts):
		return fmt.Errorf("{fanout} has numbers for relations of %s and sums of %d: give one for each hop", Count(len(r.Each), "hop"), len(r.Fanouts))
	}
	for h, of := range r.Each {
		sum := 0
		for _, k := range of {
			if k < 1 || k > math.MaxInt32-sum {
				return fmt.Errorf("{fanout} has %d for a relation: give how many neighbours are drawn, at least one", k)
			}
			sum += k
		}
		if len(of) != r.Model.Relations || sum != r.Fanouts[h] {
			return fmt.Errorf("{fanout} has numbers for %s that add up to %d, and the model tells %d apart and draws %d", Count(len(of), "relation"), sum, r.Model.Relations, r.Fanouts[h])
		}
	}
	return nil
}
