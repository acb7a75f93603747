package pipe

import (
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Strategy is pipe or graph.
type Strategy string

var _ strategy.Strategy = Strategy("")

// The two.
const (
	Pipe  Strategy = strategy.Pipe
	Graph Strategy = strategy.Graph
)

// Name implements strategy.Strategy.
func (s Strategy) Name() string { return string(s) }

// New implements strategy.Strategy.
func (s Strategy) New(l strategy.Layout, set strategy.Settings) (strategy.Dealer, error) {
	return Nobody, set.CheckShards(len(l.Owners))
}

// Nobody is a Dealer of no roots: a Worker finds by itself what is its.
var Nobody strategy.Dealer = nobody{}

type nobody struct{}

// Deal implements strategy.Dealer.
func (nobody) Deal(to []strategy.Group, _ []uint32, _ int) []strategy.Group { return to[:0] }

// Note implements strategy.Dealer.
func (nobody) Note(float64) {}

// Tuning implements strategy.Dealer.
func (nobody) Tuning() strategy.Tuning { return strategy.Tuning{} }

// Restore implements strategy.Dealer.
func (nobody) Restore(strategy.Tuning) {}

// Check says in a sentence why a model can't be trained so.
func Check(m *nn.Model, s *strategy.Settings) error {
	layers := m.Hops()
	switch {
	case m.Spec().Jump != nn.JumpNone:
		return fmt.Errorf("--set model.jump=%s has the head see the rows of all layers, which would have to travel through all stages: leave it out, or take another --strategy", m.Spec().Jump)
	case layers == 0:
		return errors.New("an mlp has no layers along edges, whose rows a pipeline would keep from travelling: take another --strategy")
	case s.Strategy == strategy.Pipe && s.Pipe.Stages > layers:
		return fmt.Errorf("pipe.stages=%d: the model has %d layers, and a stage has one at least: choose %d stages or fewer", s.Pipe.Stages, layers, layers)
	}
	return nil
}

// Plan is what of a task follows from who has which shards, and sets it: the same on all
// nodes.
func (t *Task) Plan(l strategy.Layout, set *strategy.Settings, edges int) error {
	name, p := set.Strategy, &set.Pipe
	ways := p.WaysOf(name, l.Nodes)
	shape, err := NewShape(l.Firsts, ways, p.ChunksOf(name, l.Nodes, len(l.Owners)))
	if err != nil {
		return err
	}
	t.Shape = shape
	t.Seats = NewSeats(p.StagesOf(name, l.Nodes, t.Model.Hops()), ways, l.Nodes, func(node, way int) (n uint64) {
		_, _, first, end := shape.Of(way)
		for shard := first; shard < end; shard++ {
			if l.Owners[shard] == node {
				n += uint64(l.Firsts[shard+1] - l.Firsts[shard])
			}
		}
		return n
	})
	t.Cuts = Cut(t.Model.Stages(), t.Seats.Stages, int(l.Vertices()), edges)
	t.Options = Options{
		Shuffle: !p.Ordered, Period: p.PeriodOf(), Factor: 2,
		Halo:      Halo{Policy: p.HaloOf(), Share: p.ShareOf(), Age: p.AgeOf()},
		Recompute: name == strategy.Pipe && !p.Keep,
		Histories: p.HistoriesOf(), Kept: p.KeepGradients,
	}
	if p.Single || p.KeepGradients {
		t.Factor = 1
	}
	return nil
}
