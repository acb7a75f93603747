package train

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
)

// seen is what the roots of this node's groups have seen of their own in-edges, in all
// super-epochs so far: an edge is seen by the group of its target, when its source was
// in that group's shards or halo.
//
// A run that goes on knows of the super-epochs before which shards there were. Which part
// of a halo was there, where it has a cap, it does not, and tells no less than it told
// before.
type seen struct {
	ever  [][]uint64 // of each group: a bit for each vertex that it has had; nil: not this node's
	edges uint64     // that were seen
}

// add takes a scene into account, and those before the first.
func (a *seen) add(n *isolated, s *scene) {
	if a.ever == nil {
		a.ever = make([][]uint64, n.schedule.Groups())
		for _, g := range n.mine {
			a.ever[g] = make([]uint64, (n.data.topology.Vertices()+63)/64)
			for super := range s.super {
				a.shards(n, g, super)
			}
		}
	}
	a.edges = 0
	for _, g := range n.mine {
		a.shards(n, g, s.super)
		for _, v := range s.contexts[g].Halo() {
			a.ever[g][v/64] |= 1 << (v % 64)
		}
		a.edges += a.count(n, g)
	}
}

// shards marks those that a group has in a super-epoch.
func (a *seen) shards(n *isolated, group, super int) {
	first, end := n.schedule.Base(group)
	has := n.schedule.Swept(group, super)
	for shard := first; shard < end; shard++ {
		has = append(has, shard)
	}
	for _, shard := range has {
		for v := n.layout.Firsts[shard]; v < n.layout.Firsts[shard+1]; v++ {
			a.ever[group][v/64] |= 1 << (v % 64)
		}
	}
}

// count is how many in-edges of a group's own vertices were seen.
func (a *seen) count(n *isolated, group int) (edges uint64) {
	first, end := n.schedule.Base(group)
	ever := a.ever[group]
	for v := n.layout.Firsts[first]; v < n.layout.Firsts[end]; v++ {
		sources, _, _, ok := n.lacking.Row(v)
		if !ok {
			sources, _ = n.data.topology.Row(int(v))
		}
		for _, u := range sources {
			edges += ever[u/64] >> (u % 64) & 1
		}
	}
	return edges
}

// bytes is the memory that it takes.
func (a *seen) bytes() (n uint64) {
	for _, bits := range a.ever {
		n += 8 * uint64(len(bits))
	}
	return n
}

// see sets what is told of an epoch: which super-epoch it is of, from 1, and the share of
// edges that were seen. seen are those of all nodes.
func (e *Epoch) see(n *isolated, seen uint64, before float64) {
	e.Super, e.Seen = n.now.super+1, 1
	if all := n.data.about.Edges; all > 0 {
		e.Seen = max(before, min(1, float64(seen)/float64(all)))
	}
}

// checkIsolation says in a sentence what keeps groups from training in isolation.
func (r *Recipe) checkIsolation(about About) error {
	settings := &r.Sharing.Grappa
	if settings.OnPlateau() && about.Splits[r.Split].Val == 0 {
		return fmt.Errorf("--set grappa.switch=plateau needs validation vertices to judge epochs by, and split %d has none: leave it out, or choose another --split", r.Split)
	}
	return grappa.CheckModel(settings, r.Model)
}

// sameIsolation says whether two jobs train the same in isolation. How what they see is brought
// is no part of it.
func sameIsolation(a, b *strategy.Settings) bool {
	x, y := a.Grappa, b.Grappa
	x.Serial, y.Serial = false, false
	return x == y && (a.Strategy == strategy.Grappa) == (b.Strategy == strategy.Grappa)
}

// without lists the nodes of a layout that a schedule leaves without groups.
func without(l *strategy.Layout, s *grappa.Schedule) (nodes []int) {
	var with []int
	for g := range s.Groups() {
		with = append(with, grappa.NodeOf(l, s, g))
	}
	for node := range l.Nodes {
		if !slices.Contains(with, node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}
