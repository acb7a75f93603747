package train

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// weigh sets what the losses of a group's roots count.
func (n *isolated) weigh(s *slot, g *group) {
	g.weights, g.weight = nil, float64(len(g.Roots))
	if len(g.Roots) == 0 {
		return
	}
	w := n.corrector.Weigh(g.weighed[:0], n.of(g.Roots), s.roots, g.Roots, g.batch.Blocks)
	g.weight = grappa.Sum(w, len(g.Roots))
	if w != nil {
		g.weighed, g.weights = w, w
	}
}

// gather finds the rows of a slot: all of them are here. What is not has not been given
// to the group, and is asked of nobody.
func (n *isolated) gather(s *slot) error {
	r := &s.far
	if n.now.rows != nil {
		r.Far.Kept = &n.now.rows.Far
	} else {
		r.Far.Kept = nil
	}
	for len(r.Places) < len(s.sets) {
		r.Places = append(r.Places, nil)
	}
	r.Places = r.Places[:len(s.sets)]
	for i, set := range s.sets {
		r.Places[i] = r.Places[i][:0]
		if len(set) == 0 {
			continue
		}
		c := n.of(s.groups[i].Roots)
		for _, v := range set {
			place, ok := v, c.Has(v)
			if ok && !n.source.Has(v) {
				place, ok = n.now.rows.Place(v)
			}
			if !ok {
				return fmt.Errorf("group %d trains in isolation and would read vertex %d, which it has not been given", c.Group, v)
			}
			r.Places[i] = append(r.Places[i], place)
		}
		s.gathered += len(set)
	}
	return nil
}

// scaleBy weighs the gradients of a group's losses.
func (t *learner) scaleBy(g *group, dz tensor.Matrix) {
	if g.weights == nil {
		return
	}
	w := t.work.Alloc(t.device.Type(), len(g.weights), 1)
	t.device.Write(w, g.weights)
	t.device.ScaleRows(dz, dz, w)
}

// weightUnit is one over the unit of the weights that nodes tell each other: whole ones add up to the
// same in any order.
const weightUnit = 1 << 24

// weight is what the losses of this node's roots count together, as its note has it.
func (s *slot) weight() (units uint64) {
	for i := range s.groups {
		units += uint64(s.groups[i].weight*weightUnit + 0.5)
	}
	return units
}

// normalise scales the sum of gradients, where weights are relative to each other.
func (t *learner) normalise(s *slot, units uint64) {
	by := t.isolated.corrector.Scale(len(s.roots), float64(units)/weightUnit)
	if by != 1 {
		t.device.Combine(t.gradients, by, t.gradients, 0, tensor.Matrix{})
	}
}
