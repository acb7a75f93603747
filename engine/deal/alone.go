package deal

import "github.com/hopmesh/hopmesh/engine/peer"

// Alone deals a batch to a single node, in one group or by grains.
type Alone struct {
	Untimed

	layout peer.Layout
	grains *Grains // nil: in one group
}

// NewAlone returns a dealer for one node; grains means that gradients are added up by
// shard.
func NewAlone(l *peer.Layout, grains bool) *Alone {
	a := &Alone{layout: *l}
	if grains {
		a.grains = &Grains{}
	}
	return a
}

// Deal implements Dealer.
func (a *Alone) Deal(to []Group, batch []uint32, _ int) []Group {
	var g *Group
	to = to[:0]
	if a.grains == nil {
		to, g = More(to)
		g.Roots = append(g.Roots, batch...)
		return to
	}
	a.grains.Cut(&a.layout, batch)
	for shard := range a.layout.Owners {
		if roots := a.grains.Of(shard); len(roots) > 0 {
			to, g = More(to)
			g.Roots, g.Grain = append(g.Roots, roots...), shard
		}
	}
	return to
}
