package pipe

import (
	"strings"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A Plan is how many stages and ways a job has, and where among the model's stages each
// stage begins, then how many those are. It is the same on all nodes. What is learnt
// depends on its ways, and on nothing else of it.
type Plan struct {
	Stages, Ways int
	Cuts         []int
	// Tried are the predictions that it was chosen by, the best first, and itself first of
	// all: none, where nothing was predicted.
	Tried []Prediction
}

// Place sets what of a task follows from a plan, and from who has which shards: the same
// on all nodes.
func (t *Task) Place(p *Plan, f *Facts) error {
	shape, err := f.shape(p.Ways)
	if err != nil {
		return err
	}
	name, s := f.Settings.Strategy, &f.Settings.Pipe
	t.Shape, t.Seats, t.Cuts = shape, seated(p.Stages, shape, &f.Layout), p.Cuts
	t.Options = Options{
		Seed: t.Seed, Shuffle: !s.Ordered, Period: s.PeriodOf(), Factor: 2,
		Halo:      Halo{Policy: s.HaloOf(), Share: s.ShareOf(), Age: s.AgeOf()},
		Recompute: name == strategy.Pipe && s.Again,
		Histories: s.HistoriesOf(), Kept: s.KeepGradients,
	}
	if s.Single || s.KeepGradients {
		t.Factor = 1
	}
	return nil
}

// MayRecompute says whether each node decides by its memory whether it keeps what forward
// makes for backward, which changes no bit, and nothing that others see.
func MayRecompute(s *strategy.Settings) bool {
	return s.Strategy == strategy.Pipe && !s.Pipe.Keep && !s.Pipe.Again
}

// seated places ways on nodes: the first stage goes to who owns most of their vertices.
func seated(stages int, shape *Shape, l *strategy.Layout) *Seats {
	return NewSeats(stages, shape.Ways(), l.Nodes, func(node, way int) (n uint64) {
		_, _, first, end := shape.Of(way)
		for shard := first; shard < end; shard++ {
			if l.Owners[shard] == node {
				n += uint64(l.Firsts[shard+1] - l.Firsts[shard])
			}
		}
		return n
	})
}

// shape divides the graph into ways.
func (f *Facts) shape(ways int) (*Shape, error) {
	s := f.Settings
	chunks := s.Pipe.ChunksOf(s.Strategy, f.Layout.Nodes, len(f.Layout.Owners))
	if s.Strategy == strategy.Graph {
		chunks = ways
	}
	return NewShape(f.Layout.Firsts, f.shards(), ways, chunks)
}

// shards is what each shard costs, by its vertices and the edges that end there: so ways
// take about as long as each other, however much degrees differ. What is learnt depends on
// ways, so that no measurement may.
func (f *Facts) shards() []uint64 {
	firsts := f.Layout.Firsts
	all, stages := make([]uint64, len(firsts)-1), f.Model.Stages()
	units := Units(stages)
	for shard := range all {
		edges := 0
		for v := firsts[shard]; v < firsts[shard+1]; v++ {
			edges += f.Census.topology.Degree(int(v))
		}
		for _, c := range costs(stages, units, int(firsts[shard+1]-firsts[shard]), edges) {
			all[shard] += uint64(c)
		}
	}
	return all
}

// columnsOf are those of a gradient that belong to some of the model's stages.
func columnsOf(m *nn.Model, first, end int) (from, to int) {
	from, to = m.Size(), 0
	for _, p := range m.Params() {
		for _, info := range m.Stages()[first:end] {
			if strings.HasPrefix(p.Name, info.Name+".") {
				from, to = min(from, p.Offset), max(to, p.Offset+p.Rows*p.Cols)
			}
		}
	}
	return min(from, to), to
}
