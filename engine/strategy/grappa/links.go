package grappa

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/vicinity"
)

// Where pairs of vertices are learnt, a pair is its source's group's, which learns it while the
// target is in a shard that the group has, too. All nodes know all edges, as with any strategy that
// learns pairs, and so which pairs a step has: nothing is exchanged for that. Rows of features are
// brought for what groups see, and for nothing else.

// regions returns where each group learns pairs in a super-epoch; nil where vertices are learnt.
func (s *Schedule) regions(p *link.Pairs, firsts []uint32, super int) *link.Regions {
	if p == nil {
		return nil
	}
	all, has := make([]link.Region, s.groups), make([]bool, s.shards)
	for g := range all {
		first, end := s.Base(g)
		all[g].Sources = link.Span{First: firsts[first], End: firsts[end]}
		clear(has)
		for _, shard := range s.has(g, super) {
			has[shard] = true
		}
		for _, r := range vicinity.RangesOf(firsts, has) {
			all[g].Ends = append(all[g].Ends, link.Span(r))
		}
	}
	return link.NewRegions(p, all)
}

// pairing is the training pairs of a run, where pairs are learnt.
type pairing struct {
	schedule *Schedule
	// between counts, of each group and each shard, the pairs that begin in the group and end in the
	// shard; nil where vertices are learnt.
	between [][]uint64
	all     uint64
	supers  int // of the job
}

// begin counts pairs. It returns an error, the same on all nodes, if a super-epoch has none.
func (p *pairing) begin(s *Schedule, l *peer.Layout, pairs []link.Pair, supers int) error {
	*p = pairing{schedule: s, between: make([][]uint64, s.groups), all: uint64(len(pairs)), supers: supers}
	for g := range p.between {
		p.between[g] = make([]uint64, s.shards)
	}
	for _, of := range pairs {
		p.between[s.Of(l.Shard(of.Source))][l.Shard(of.Target)]++
	}
	for g, to := range p.between {
		first, end := s.Base(g)
		if slices.Max(to[first:end]) > 0 {
			return nil // which is learnt at all times
		}
	}
	for super := range supers {
		if p.learns(super) == 0 {
			return &session.Agreed{Err: fmt.Errorf("no group has both vertices of a training pair in super-epoch %d, so that nothing would be learnt: choose fewer {grappa.groups}, more {grappa.swept}, or another {strategy}", super+1)}
		}
	}
	return nil
}

// learns counts the pairs that all groups learn in a super-epoch.
func (p *pairing) learns(super int) (pairs uint64) {
	for g, to := range p.between {
		for _, shard := range p.schedule.has(g, super) {
			pairs += to[shard]
		}
	}
	return pairs
}

// reached counts the pairs that each group learns at some time of the job.
func (p *pairing) reached() []uint64 {
	all, met := make([]uint64, len(p.between)), make([]bool, p.schedule.shards)
	for g, to := range p.between {
		clear(met)
		for super := range min(p.supers, p.schedule.slots) {
			for _, shard := range p.schedule.has(g, super) {
				met[shard] = true
			}
		}
		for shard, pairs := range to {
			if met[shard] {
				all[g] += pairs
			}
		}
	}
	return all
}

// notes returns what users should know of the pairs that groups learn.
func (p *pairing) notes() (all []string) {
	if p.between == nil {
		return nil
	}
	var without []int
	reached, sum := uint64(0), uint64(0)
	for g, pairs := range p.reached() {
		if reached += pairs; pairs == 0 {
			without = append(without, g)
		}
	}
	if len(without) > 0 {
		all = append(all, fmt.Sprintf("%s no training pair both of whose vertices %s, and only %s others with what they see: choose fewer grappa.groups", groupsOf(without), verb(len(without), "it has", "they have"), verb(len(without), "serves", "serve")))
	}
	supers := min(p.supers, p.schedule.slots)
	for super := range supers {
		sum += p.learns(super)
	}
	switch now := sum / uint64(supers); {
	case now == p.all:
	case supers == 1:
		all = append(all, fmt.Sprintf("groups learn %d of %d training pairs, those both of whose vertices they have, and never the others", now, p.all))
	default:
		all = append(all, fmt.Sprintf("groups learn the training pairs both of whose vertices they have: of %d about %d in a super-epoch, and %d in %d of them", p.all, now, reached, supers))
	}
	return all
}

// Regions implements forecast.Sight.
func (o *outlook) Regions() *link.Regions {
	return o.schedule.regions(o.Graph.Pairs(), o.Layout.Firsts, o.super)
}

// knows reports whether a node has the edges of a shard before views bring any.
func (o *outlook) knows(node, shard int) bool { return o.AllEdges || o.Holds(node, shard) }
