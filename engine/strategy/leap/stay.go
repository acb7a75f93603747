package leap

import "github.com/hopmesh/hopmesh/engine/strategy"

// stay deals roots to their owners, and no model travels.
type stay struct {
	layout        strategy.Layout
	deterministic bool
	grains        strategy.Grains
}

// Deal implements strategy.Dealer: all of a node's roots at once, or a group a grain
// where gradients are added up so.
func (d *stay) Deal(to []strategy.Group, batch []uint32, node int) []strategy.Group {
	var g *strategy.Group
	to = to[:0]
	if !d.deterministic {
		to, g = strategy.More(to)
		for _, v := range batch {
			if d.layout.Owner(v) == node {
				g.Roots = append(g.Roots, v)
			}
		}
		return to
	}
	d.grains.Cut(&d.layout, batch)
	for shard, owner := range d.layout.Owners {
		if roots := d.grains.Of(shard); owner == node && len(roots) > 0 {
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
