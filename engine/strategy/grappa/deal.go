package grappa

import "github.com/hopmesh/hopmesh/engine/strategy"

// Strategy is the strategy.
type Strategy struct{}

var _ strategy.Strategy = Strategy{}

// Name implements strategy.Strategy.
func (Strategy) Name() string { return strategy.Grappa }

// New implements strategy.Strategy. Who deals does not sweep: of the seed nothing
// depends here.
func (Strategy) New(l strategy.Layout, o strategy.Settings) (strategy.Dealer, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	s, err := NewSchedule(len(l.Owners), &o.Grappa, 0)
	if err != nil {
		return nil, err
	}
	d := &dealer{layout: l, schedule: s, deterministic: o.Deterministic}
	for g := range s.groups {
		d.nodes = append(d.nodes, NodeOf(&l, s, g))
	}
	if o.Grappa.Average > 1 {
		return &settled{d}, nil
	}
	return d, nil
}

// NodeOf is the node that computes a group: the owner of most of its base shards, the
// first of those that own as many.
func NodeOf(l *strategy.Layout, s *Schedule, group int) int {
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

type dealer struct {
	layout        strategy.Layout
	schedule      *Schedule
	deterministic bool
	nodes         []int // of each group
	grains        strategy.Grains
}

// Deal implements strategy.Dealer: the roots in each group of the node, at once, or a
// group a grain where gradients are added up so.
func (d *dealer) Deal(to []strategy.Group, batch []uint32, node int) []strategy.Group {
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
func (d *dealer) deal(to []strategy.Group, group int) []strategy.Group {
	var g *strategy.Group
	first, end := d.schedule.Base(group)
	for shard := first; shard < end; shard++ {
		roots := d.grains.Of(shard)
		if len(roots) == 0 {
			continue
		}
		if g == nil || d.deterministic {
			to, g = strategy.More(to)
		}
		g.Roots = append(g.Roots, roots...)
		if d.deterministic {
			g.Grain = shard
		}
	}
	return to
}

// Note implements strategy.Dealer: nothing depends on it.
func (d *dealer) Note(float64) {}

// Tuning implements strategy.Dealer.
func (d *dealer) Tuning() strategy.Tuning { return strategy.Tuning{} }

// Restore implements strategy.Dealer.
func (d *dealer) Restore(strategy.Tuning) {}

// settled deals where each node has a model of its own, until all are averaged.
type settled struct{ *dealer }

var _ strategy.Guide = (*settled)(nil)

// After implements strategy.Guide: models stay.
func (*settled) After(_ []uint32, model int) int { return model }
