// Package dataset is the graph as training and evaluation read it: shards in order, with
// topology, features, labels and the split. It maps nothing and copies little.
package dataset

import (
	"cmp"
	"slices"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// A Graph is a dataset as training reads it: all of it lies in the mapped shards, except
// the list of training vertices, which all nodes deal alike. Of shards that other nodes
// hold it has what every node must know, and no features.
type Graph struct {
	About    About
	Shards   []*graph.Shard // in order
	Split    int
	Topology *sample.Topology
	Features *features.Store
	// Training are vertices with labels or, where pairs are learnt, the places of training
	// pairs: ascending, then in the order of an epoch.
	Training []uint32
	Links    *link.Pairs // nil: vertices are learnt
	Mapped   uint64      // bytes of the shards
	Copied   uint64      // bytes of what Link has made
	Entries  float64     // of a vertex' sparse features, on average

	whole *sample.Topology // with edges that are not for messages; nil: there are none
}

// Open returns the graph of shards that are all here.
func Open(shards []*graph.Shard, split int, normalise string) (*Graph, error) {
	store, err := features.Open(shards, normalise) // it wants them in order
	if err != nil {
		return nil, err
	}
	topology, err := sample.NewTopology(shards)
	if err != nil {
		return nil, err
	}
	d := &Graph{About: Describe(shards), Shards: shards, Split: split, Topology: topology, Features: store}
	for _, s := range shards {
		d.Mapped += mappedBytes(s)
		if s.Sparse != nil {
			d.Entries += float64(len(s.Sparse.Columns)) / float64(d.About.Vertices)
		}
	}
	d.learn(nil)
	return d, d.hide()
}

// OpenPart returns the graph of shards of which only some are held here, and the others as
// a replica has them.
func OpenPart(held []*graph.Shard, r *replica.Replica, split int, normalise string) (*Graph, error) {
	store, err := features.OpenPart(r.Shards, r.Stats, normalise)
	if err != nil {
		return nil, err
	}
	topology, err := sample.NewPartial(r.Shards, r.Summaries)
	if err != nil {
		return nil, err
	}
	if store.Columns() == 0 {
		store.Hold(func(i int) bool { return held[i] != nil })
	}
	d := &Graph{About: DescribePart(r.Shards, r.Summaries, r.Seeds), Shards: r.Shards, Split: split, Topology: topology, Features: store}
	for i := range r.Shards {
		if held[i] != nil {
			d.Mapped += mappedBytes(held[i])
		}
		if store.Sparse() {
			d.Entries += float64(r.Stats[i].Entries) / float64(d.About.Vertices)
		}
	}
	d.learn(r.Seeds)
	return d, d.hide()
}

// learn lists the vertices that are learnt from: of shards without labels here by their
// seeds.
func (d *Graph) learn(seeds []*graph.Seeds) {
	if d.Split < len(d.About.Splits) {
		d.Training = make([]uint32, 0, d.About.Splits[d.Split].Train)
	}
	for i, s := range d.Shards {
		if i < len(seeds) && seeds[i] != nil {
			for row := range seeds[i].Training.All() {
				d.Training = append(d.Training, s.First+uint32(row))
			}
			continue
		}
		if s.Labels == nil || d.Split >= len(s.Marks) {
			continue
		}
		for row, mark := range s.Marks[d.Split] {
			if mark == graph.Train && s.Labels[row] >= 0 {
				d.Training = append(d.Training, s.First+uint32(row))
			}
		}
	}
}

// mappedBytes is about as much as the shard's file has.
func mappedBytes(s *graph.Shard) uint64 {
	n := 8*len(s.Indptr) + 4*len(s.Indices) + 4*len(s.Weights) + 4*len(s.Dense) + 2*len(s.DenseBF16) + 4*len(s.Labels) + len(s.YesOrNo) + 4*len(s.Numbers)
	if s.Related != nil {
		n += 4 * len(s.Related.Of)
	}
	n += s.EdgeRows.Bytes()
	if s.Sparse != nil {
		n += 8*len(s.Sparse.Indptr) + 4*len(s.Sparse.Columns) + 4*len(s.Sparse.Values) + 2*len(s.Sparse.ValuesBF16)
	}
	n += len(s.Marks) * s.Vertices
	return uint64(n + 8*len(s.Originals.Ints) + 8*len(s.Originals.Offsets) + len(s.Originals.Bytes))
}

// holder is the place of the shard that holds v. It may be near, which is looked at
// first.
func (d *Graph) holder(v uint32, near int) int {
	if s := d.Shards[near]; v-s.First < uint32(s.Vertices) {
		return near
	}
	// The first shard that ends behind it: those without vertices end too early.
	at, _ := slices.BinarySearchFunc(d.Shards, v+1, func(s *graph.Shard, end uint32) int {
		return cmp.Compare(s.First+uint32(s.Vertices), end)
	})
	return at
}

// Target appends the words of v's target (see graph.Shard.AppendTarget), if they are here.
func (d *Graph) Target(to []int32, v uint32) (target []int32, here bool) {
	s := d.Shards[d.holder(v, 0)]
	if !s.HasTargets() {
		return to, false
	}
	return s.AppendTarget(to, int(v-s.First)), true
}

// Mark returns the part of the split that v is in, if its shard's marks are here.
func (d *Graph) Mark(v uint32) (mark int32, here bool) {
	s := d.Shards[d.holder(v, 0)]
	if d.Split >= len(s.Marks) {
		return int32(graph.Unmarked), false
	}
	return int32(s.Marks[d.Split][v-s.First]), true
}

// TargetsOf appends the words of the targets of some vertices, which must be here.
func (d *Graph) TargetsOf(to []int32, vertices []uint32) []int32 {
	at := 0
	for _, v := range vertices {
		at = d.holder(v, at)
		s := d.Shards[at]
		to = s.AppendTarget(to, int(v-s.First))
	}
	return to
}

// Known sets the words of targets, and the marks, of the vertices from first on. A target that
// is missing, or not here, is graph.NoLabel.
func (d *Graph) Known(targets []int32, marks []graph.Mark, first int) {
	at, words := 0, d.About.Words()
	for i := range marks {
		v := uint32(first + i)
		at = d.holder(v, at)
		s, to := d.Shards[at], targets[i*words:][:words]
		marks[i] = graph.Unmarked
		if s.HasTargets() && d.Split < len(s.Marks) {
			s.AppendTarget(to[:0], int(v-s.First))
			marks[i] = s.Marks[d.Split][v-s.First]
			continue
		}
		for c := range to {
			to[c] = graph.NoLabel
		}
	}
}

// Learnt sets the words of the targets of the training vertices from first on, and
// graph.NoLabel for all others.
func (d *Graph) Learnt(targets []int32, first uint32) {
	words := d.About.Words()
	marks := make([]graph.Mark, len(targets)/words)
	d.Known(targets, marks, int(first))
	for i, mark := range marks {
		for c := range words {
			if mark != graph.Train {
				targets[i*words+c] = graph.NoLabel
			}
		}
	}
}

// Firsts returns the first vertex of each shard, then the number of vertices (see
// peer.Layout).
func Firsts(shards []*graph.Shard) (all []uint32) {
	for _, s := range shards {
		all = append(all, s.First)
	}
	return append(all, shards[0].Total)
}
