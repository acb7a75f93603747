// Package centric implements DistDGL's strategy with optimizations: a batch is cut into
// slices, one per node, and features are pulled from their owners.
package centric

import (
	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Deal returns the dealer of a job.
func Deal(l peer.Layout, s strategy.Settings) (deal.Dealer, error) {
	return &dealer{layout: l, deterministic: s.Deterministic}, nil
}

type dealer struct {
	layout        peer.Layout
	deterministic bool
	grains        deal.Grains
}

// Deal implements deal.Dealer: each node gets a slice of the batch. Where gradients
// are added up by grains, it is a run of whole grains, as even as possible, each a
// group.
func (d *dealer) Deal(to []deal.Group, batch []uint32, node int) []deal.Group {
	var g *deal.Group
	to = to[:0]
	if !d.deterministic {
		to, g = deal.More(to)
		g.Roots = append(g.Roots, deal.Slice(batch, node, d.layout.Nodes)...)
		return to
	}
	d.grains.Cut(&d.layout, batch)
	for shard := range d.layout.Owners {
		roots := d.grains.Of(shard)
		if len(roots) == 0 || d.grains.Run(shard, d.layout.Nodes) != node {
			continue
		}
		to, g = deal.More(to)
		g.Roots, g.Grain = append(g.Roots, roots...), shard
	}
	return to
}

// Note implements deal.Dealer: it does nothing.
func (d *dealer) Note(float64) {}

// Tuning implements deal.Dealer.
func (d *dealer) Tuning() deal.Tuning { return deal.Tuning{} }

// Restore implements deal.Dealer.
func (d *dealer) Restore(deal.Tuning) {}

// Strategy gives each node a slice of a mini-batch, for which it fetches the features.
var Strategy = train.Descriptor{Name: strategy.Centric, Exact: true, Deal: Deal, New: batched.Plain}
