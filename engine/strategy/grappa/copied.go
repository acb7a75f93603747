package grappa

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/vicinity"
)

// turns reports whether what groups see ever changes.
func (o *outlook) turns() bool { return o.settings.sweeps() && o.schedule.Groups() > 1 }

// views returns how many views there are at once.
func (o *outlook) views() int {
	if o.turns() {
		return 2
	}
	return 1
}

// context builds what a group sees of a graph that is here.
func (o *outlook) context(group, super int, in *vicinity.Vault) (*Context, error) {
	topology := o.Graph.Topology
	if o.Related {
		topology = topology.Relational()
	}
	b, err := NewBuilder(BuildOptions{
		Schedule: o.schedule, Settings: &o.settings, Group: group, Super: super, Seed: o.Seed, Firsts: o.Layout.Firsts, Topology: topology, In: in,
	})
	if err != nil {
		return nil, err
	}
	return b.Context()
}

// copied makes files as large as those of the edges that a group of a node sees of others'
// shards, as a view does: a context of a graph that is here shares them with it. rows are
// the vertices whose edges it sees.
func (o *outlook) copied(to *vicinity.Vault, node int, rows *vicinity.Set) error {
	if to == nil {
		return nil
	}
	var offsets []int64
	var ids []int32
	for shard := range o.Layout.Owners {
		first, end := o.Layout.Firsts[shard], o.Layout.Firsts[shard+1]
		if o.knows(node, shard) || rows.Count(first, end) == 0 {
			continue
		}
		n, edges := int(end-first), 0
		for v := first; v < end; v++ {
			if rows.Has(v) {
				edges += o.Graph.Topology.Degree(int(v))
			}
		}
		offsets, ids = slices.Grow(offsets[:0], n+1)[:n+1], slices.Grow(ids[:0], max(n, edges))
		_, err := to.KeepOffsets(offsets)
		for _, k := range []int{edges, n} { // sources, and degrees
			if err == nil {
				_, err = to.KeepIDs(ids[:k])
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
