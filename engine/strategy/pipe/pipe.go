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
