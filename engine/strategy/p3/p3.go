// Package p3 is P3's way: each node holds some columns of all features, and all nodes
// compute the first layer of every batch together. Only activations travel.
//
// A node's columns are brought once (Source, Columns). A step has four parts: Ahead
// finds out which rows the first layers of all nodes read, and aggregates for all of
// them; Send multiplies with this node's rows of the weights; Sums adds up what all have
// made for its own roots; Back sends the errors of these sums to all, and makes of
// those of the others the gradient of its rows of the weights. What follows the sum is
// each node's own, and no business of this package.
//
// Between Send and Sums of a step there may be updates of steps before it: then its
// partial sums travel while those are computed, and are of weights that are older.
package p3

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
)

// Strategy is the strategy.
type Strategy struct{}

var _ strategy.Strategy = Strategy{}

// Name implements strategy.Strategy.
func (Strategy) Name() string { return strategy.P3 }

// New implements strategy.Strategy: beyond the first layer a root is computed by its
// owner, as with leap, since roots of one owner have more neighbours in common and their
// first layers fewer targets; or roots are dealt in slices, as published.
func (Strategy) New(l strategy.Layout, s strategy.Settings) (strategy.Dealer, error) {
	if s.P3.Sliced() {
		return centric.Strategy{}.New(l, s)
	}
	return leap.Strategy{}.New(l, strategy.Settings{
		Strategy: strategy.Leap, Deterministic: s.Deterministic, Leap: strategy.LeapSettings{Mode: "stay", Uneven: true},
	})
}

// Check says in a sentence why a model can't be trained so, and what to do.
func Check(m *nn.Model) error {
	if _, err := m.Front(); err != nil {
		return fmt.Errorf("p3 can't share out the columns of features: %w: choose another strategy, such as leap", err)
	}
	return nil
}
