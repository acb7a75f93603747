// Package centric cuts a batch into slices, one for each node, wherever the seed vertices are
// stored, and pulls features from their owners: the simplest way to share a batch.
package centric

import (
	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Name is what users call the strategy.
const Name = "centric"

// Deal returns the dealer of a job.
func Deal(l peer.Layout, s strategy.Settings) (deal.Dealer, error) {
	return &dealer{layout: l, deterministic: s.Deterministic}, nil
}

type dealer struct {
	deal.Untimed

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

// Strategy gives each node a slice of a mini-batch, for which it fetches the features.
var Strategy = train.Descriptor{
	Declaration: strategy.Declaration{
		Name: Name, Exact: true, Learns: strategy.Learns{Links: true, Embeddings: true},
		Keys: func() strategy.Keys { return new(settings).keys() },
	},
	Deal:     Deal,
	Cache:    cached,
	Forecast: forecast.Hooks{Volume: forecast.Batched},
	New:      batched.Plain,
}

// settings are those of centric.
type settings struct {
	cache int // rows of other nodes to keep; strategy.Asked: as memory has room
}

func (s *settings) keys() strategy.Keys {
	return strategy.Keys{
		strategy.Cache(&s.cache, "centric.cache"),
	}
}

// cached returns how many rows a job keeps. Its settings have been checked.
func cached(job *strategy.Settings) int {
	var s settings
	_ = s.keys().Parse(job.Values)
	return s.cache
}
