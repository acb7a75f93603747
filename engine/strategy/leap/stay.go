package leap

import (
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// stay deals roots to their nodes, and no model travels.
type stay struct {
	deal.Untimed

	layout        peer.Layout
	deterministic bool
	places        places
	grains        deal.Grains
	own           []uint32 // roots of the node
}

// Deal implements deal.Dealer: all of a node's roots at once or, where gradients
// are added up by grains, a group per grain.
func (d *stay) Deal(to []deal.Group, batch []uint32, node int) []deal.Group {
	var g *deal.Group
	to = to[:0]
	d.places.find(batch)
	if !d.deterministic {
		to, g = deal.More(to)
		g.Roots = d.places.of(g.Roots, batch, node)
		return to
	}
	d.own = d.places.of(d.own[:0], batch, node)
	d.grains.Cut(&d.layout, d.own)
	for shard := range d.layout.Owners {
		if roots := d.grains.Of(shard); len(roots) > 0 {
			to, g = deal.More(to)
			g.Roots, g.Grain = append(g.Roots, roots...), shard
		}
	}
	return to
}
