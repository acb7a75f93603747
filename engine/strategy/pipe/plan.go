package pipe

import (
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/census"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/costs"
)

// Facts are what candidates are ranked by. They are the same on all nodes.
type Facts struct {
	Model    *nn.Model
	Census   *census.Census
	Costs    *costs.Costs
	Network  costs.Network
	Layout   peer.Layout
	Settings Settings
	Number   int      // bytes of one
	Entries  float64  // that a row of sparse features has; 0: they are dense
	Memory   []uint64 // that each node has for the job; 0: unknown
	Held     bool     // blocks lie in memory, not in files

	parts map[int][][]part // by the number of ways, then by way
}

// Place sets what of a task follows from an arrangement and from the owners of shards.
func (t *Task) Place(c *arrange.Candidate, f *Facts) error {
	shape, err := f.shape(c.Ways)
	if err != nil {
		return err
	}
	s := &f.Settings
	t.Shape, t.Seats, t.Cuts = shape, arrange.Seated(c.Stages, shape, &f.Layout), c.Cuts
	t.Options = Options{
		Seed: t.Seed, Shuffle: s.Shuffle, Period: s.Period, Factor: 2,
		Halo:      Halo{Policy: s.Halo, Share: float64(s.Share) / 100, Age: s.Age},
		Recompute: s.Recomputes(),
		Histories: s.Histories, Kept: s.Gradients == kept,
	}
	if !s.Compensate || s.Gradients == kept {
		t.Factor = 1
	}
	return nil
}

// shape divides the graph into ways.
func (f *Facts) shape(ways int) (*arrange.Shape, error) {
	chunks := f.Settings.ChunksOf(f.Layout.Nodes, len(f.Layout.Owners))
	if f.Settings.Graph {
		chunks = ways
	}
	return arrange.NewShape(f.Layout.Firsts, arrange.ShardCosts(f.Model.Stages(), f.Layout.Firsts, f.Census.Edges), ways, chunks)
}

// partsOf returns the parts in which newWay computes the shards of each way, so that the
// memory of any node can be forecast.
func (f *Facts) partsOf(shape *arrange.Shape) [][]part {
	if all, ok := f.parts[shape.Ways()]; ok {
		return all
	}
	all, counts := make([][]part, shape.Ways()), f.Census.Of(shape)
	for number := range all {
		for p := range shape.Positions() {
			first, end := shape.Shards(number, p)
			for half := range 2 {
				for shard := first; shard < end; shard++ {
					size, other := counts.Halves[shard][half], counts.Halves[shard][1-half]
					if size.Vertices > 0 {
						all[number] = append(all[number], part{
							position: p, shard: shard, inner: half == 0, split: other.Vertices > 0,
							vertices: size.Vertices, sources: size.Sources, entries: size.Entries,
						})
					}
				}
			}
		}
	}
	if f.parts == nil {
		f.parts = map[int][][]part{}
	}
	f.parts[shape.Ways()] = all
	return all
}
