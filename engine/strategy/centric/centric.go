// Package centric is DistDGL's way, made as good as it can be: a batch is cut into
// slices, one a node, and features are pulled from their owners.
package centric

import "github.com/hopmesh/hopmesh/engine/strategy"

// Strategy is the strategy.
type Strategy struct{}

var _ strategy.Strategy = Strategy{}

// Name implements strategy.Strategy.
func (Strategy) Name() string { return strategy.Centric }

// New implements strategy.Strategy.
func (Strategy) New(l strategy.Layout, s strategy.Settings) (strategy.Dealer, error) {
	return &dealer{layout: l, deterministic: s.Deterministic}, nil
}

type dealer struct {
	layout        strategy.Layout
	deterministic bool
	grains        strategy.Grains
}

// Deal implements strategy.Dealer: a slice of the batch to each node. Where gradients
// are added up by grains, a run of whole ones, as even as they are, a group each.
func (d *dealer) Deal(to []strategy.Group, batch []uint32, node int) []strategy.Group {
	var g *strategy.Group
	to = to[:0]
	if !d.deterministic {
		to, g = strategy.More(to)
		g.Roots = append(g.Roots, strategy.Slice(batch, node, d.layout.Nodes)...)
		return to
	}
	d.grains.Cut(&d.layout, batch)
	for shard := range d.layout.Owners {
		roots := d.grains.Of(shard)
		if len(roots) == 0 || d.grains.Run(shard, d.layout.Nodes) != node {
			continue
		}
		to, g = strategy.More(to)
		g.Roots, g.Grain = append(g.Roots, roots...), shard
	}
	return to
}

// Note implements strategy.Dealer: nothing depends on it.
func (d *dealer) Note(float64) {}

// Tuning implements strategy.Dealer.
func (d *dealer) Tuning() strategy.Tuning { return strategy.Tuning{} }

// Restore implements strategy.Dealer.
func (d *dealer) Restore(strategy.Tuning) {}
