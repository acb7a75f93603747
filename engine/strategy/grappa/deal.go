package grappa

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Deal returns the dealer of a job. Dealing does not depend on sweeps, and so not on
// the seed.
func Deal(l peer.Layout, job strategy.Settings) (deal.Dealer, error) {
	if err := checkSettings(&job); err != nil {
		return nil, err
	}
	o := Of(&job)
	s, err := NewSchedule(len(l.Owners), &o, 0)
	if err != nil {
		return nil, err
	}
	d := &dealer{layout: l, schedule: s, deterministic: job.Deterministic}
	for g := range s.groups {
		d.nodes = append(d.nodes, NodeOf(&l, s, g))
	}
	if o.Average > 1 {
		return &settled{d}, nil
	}
	return d, nil
}

// NodeOf returns the node that computes a group: the owner of most of its base shards,
// the first of equals.
func NodeOf(l *peer.Layout, s *Schedule, group int) int {
	owned := make([]int, l.Nodes)
	first, end := s.Base(group)
	for _, n := range l.Owners[first:end] {
		owned[n]++
	}
	most := 0
	for n, count := range owned {
		if count > owned[most] {
			most = n
		}
	}
	return most
}

// without returns the nodes of a layout that a schedule leaves without groups.
func without(l *peer.Layout, s *Schedule) (nodes []int) {
	var with []int
	for g := range s.Groups() {
		with = append(with, NodeOf(l, s, g))
	}
	for node := range l.Nodes {
		if !slices.Contains(with, node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

type dealer struct {
	deal.Untimed

	layout        peer.Layout
	schedule      *Schedule
	deterministic bool
	nodes         []int // of each group
	grains        deal.Grains
}

// Deal implements deal.Dealer: each group of the node gets its roots, all at once
// or, where gradients are added up by grains, a group per grain.
func (d *dealer) Deal(to []deal.Group, batch []uint32, node int) []deal.Group {
	to = to[:0]
	d.grains.Cut(&d.layout, batch)
	for g, n := range d.nodes {
		if n != node {
			continue
		}
		to = d.deal(to, g)
	}
	return to
}

// deal appends those of one group.
func (d *dealer) deal(to []deal.Group, group int) []deal.Group {
	var g *deal.Group
	first, end := d.schedule.Base(group)
	for shard := first; shard < end; shard++ {
		roots := d.grains.Of(shard)
		if len(roots) == 0 {
			continue
		}
		if g == nil || d.deterministic {
			to, g = deal.More(to)
		}
		g.Roots = append(g.Roots, roots...)
		if d.deterministic {
			g.Grain = shard
		}
	}
	return to
}

// settled deals where each node has a model of its own between averages.
type settled struct{ *dealer }

var _ deal.Guide = (*settled)(nil)

// After implements deal.Guide: models stay.
func (*settled) After(_ []uint32, model int) int { return model }
