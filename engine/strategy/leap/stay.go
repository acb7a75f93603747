package leap

import "github.com/hopmesh/hopmesh/engine/strategy"

// stay deals roots to where they are, and no model travels.
type stay struct {
	layout        strategy.Layout
	deterministic bool
	places        places
	grains        strategy.Grains
	own           []uint32 // roots of the node
}

// Deal implements strategy.Dealer: all of a node's roots at once, or a group a grain
// where gradients are added up so.
func (d *stay) Deal(to []strategy.Group, batch []uint32, node int) []strategy.Group {
	var g *strategy.Group
	to = to[:0]
	d.places.find(batch)
	if !d.deterministic {
		to, g = strategy.More(to)
		g.Roots = d.places.of(g.Roots, batch, node)
		return to
	}
	d.own = d.places.of(d.own[:0], batch, node)
	d.grains.Cut(&d.layout, d.own)
	for shard := range d.layout.Owners {
		if roots := d.grains.Of(shard); len(roots) > 0 {
			to, g = strategy.More(to)
			g.Roots, g.Grain = append(g.Roots, roots...), shard
		}
	}
	return to
}

// Note implements strategy.Dealer: nothing depends on it.
func (d *stay) Note(float64) {}

// Tuning implements strategy.Dealer.
func (d *stay) Tuning() strategy.Tuning { return strategy.Tuning{} }

// Restore implements strategy.Dealer.
func (d *stay) Restore(strategy.Tuning) {}
