package train

import (
	"cmp"
	"slices"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// data is the graph as training reads it: all of it lies in the mapped shards but
// for the list of training vertices. Of shards that other nodes hold it has what all
// must know, and no features.
type data struct {
	about    About
	shards   []*graph.Shard // in order
	split    int
	topology *sample.Topology
	features *features.Store
	training []uint32 // ascending, with labels
	mapped   uint64   // bytes of the shards
	entries  float64  // of a vertex' sparse features, on average
}

// newData reads shards that are all here.
func newData(shards []*graph.Shard, split int, normalise string) (*data, error) {
	store, err := features.Open(shards, normalise) // it wants them in order
	if err != nil {
		return nil, err
	}
	topology, err := sample.NewTopology(shards)
	if err != nil {
		return nil, err
	}
	d := &data{about: Describe(shards), shards: shards, split: split, topology: topology, features: store}
	for _, s := range shards {
		d.mapped += mappedBytes(s)
		if s.Sparse != nil {
			d.entries += float64(len(s.Sparse.Columns)) / float64(d.about.Vertices)
		}
	}
	d.learn()
	return d, nil
}

// newPart reads shards of which only some are held here, and the others as they were
// brought.
func newPart(held []*graph.Shard, r *replica.Replica, split int, normalise string) (*data, error) {
	store, err := features.OpenPart(r.Shards, r.Stats, normalise)
	if err != nil {
		return nil, err
	}
	topology, err := sample.NewPartial(r.Shards, r.Summaries)
	if err != nil {
		return nil, err
	}
	d := &data{about: describe(r.Shards, r.Summaries), shards: r.Shards, split: split, topology: topology, features: store}
	for i := range r.Shards {
		if held[i] != nil {
			d.mapped += mappedBytes(held[i])
		}
		if store.Sparse() {
			d.entries += float64(r.Stats[i].Entries) / float64(d.about.Vertices)
		}
	}
	d.learn()
	return d, nil
}

// learn lists the vertices that are learnt from.
func (d *data) learn() {
	for _, s := range d.shards {
		if s.Labels == nil || d.split >= len(s.Marks) {
			continue
		}
		for row, mark := range s.Marks[d.split] {
			if mark == graph.Train && s.Labels[row] >= 0 {
				d.training = append(d.training, s.First+uint32(row))
			}
		}
	}
}

// mappedBytes is about as much as the shard's file has.
func mappedBytes(s *graph.Shard) uint64 {
	n := 8*len(s.Indptr) + 4*len(s.Indices) + 4*len(s.Weights) + 4*len(s.Dense) + 2*len(s.DenseBF16) + 4*len(s.Labels)
	if s.Sparse != nil {
		n += 8*len(s.Sparse.Indptr) + 4*len(s.Sparse.Columns) + 4*len(s.Sparse.Values) + 2*len(s.Sparse.ValuesBF16)
	}
	n += len(s.Marks) * s.Vertices
	return uint64(n + 8*len(s.Originals.Ints) + 8*len(s.Originals.Offsets) + len(s.Originals.Bytes))
}

// holder is the place of the shard that holds v. It may be near, which is looked at
// first.
func (d *data) holder(v uint32, near int) int {
	if s := d.shards[near]; v-s.First < uint32(s.Vertices) {
		return near
	}
	// The first shard that ends behind it: those without vertices end too early.
	at, _ := slices.BinarySearchFunc(d.shards, v+1, func(s *graph.Shard, end uint32) int {
		return cmp.Compare(s.First+uint32(s.Vertices), end)
	})
	return at
}

// labels appends those of some vertices.
func (d *data) labels(to []int32, vertices []uint32) []int32 {
	at := 0
	for _, v := range vertices {
		at = d.holder(v, at)
		s := d.shards[at]
		to = append(to, s.Labels[v-s.First])
	}
	return to
}

// known sets the labels and marks of n vertices from first on: a label where there
// is none is graph.NoLabel.
func (d *data) known(labels []int32, marks []graph.Mark, first int) {
	at := 0
	for i := range labels {
		v := uint32(first + i)
		at = d.holder(v, at)
		s := d.shards[at]
		labels[i], marks[i] = graph.NoLabel, graph.Unmarked
		if s.Labels != nil && d.split < len(s.Marks) {
			labels[i], marks[i] = s.Labels[v-s.First], s.Marks[d.split][v-s.First]
		}
	}
}
