// Package p3 is P3's way: each node holds some columns of all features, and all nodes
// compute the first layer of every batch together. Only activations travel.
//
// A node's columns are brought once (Source, Columns). A step has three parts: Ahead
// tells the others which rows its first layer reads, and aggregates for all of them;
// Sums multiplies with this node's rows of the weights, and adds up what all have made
// for its own roots; Back sends the errors of these sums to all, and makes of
// those of the others the gradient of its rows of the weights. What follows the sum is
// each node's own, and no business of this package.
package p3

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
)

// Strategy is the strategy.
type Strategy struct{}

var _ strategy.Strategy = Strategy{}

// Name implements strategy.Strategy.
func (Strategy) Name() string { return strategy.P3 }

// New implements strategy.Strategy: beyond the first layer, roots are dealt in slices.
func (Strategy) New(l strategy.Layout, s strategy.Settings) (strategy.Dealer, error) {
	return centric.Strategy{}.New(l, s)
}

// Check says in a sentence why a model can't be trained so, and what to do.
func Check(m *nn.Model) error {
	if _, err := m.Front(); err != nil {
		return fmt.Errorf("p3 can't share out the columns of features: %w: choose another strategy, such as leap", err)
	}
	return nil
}
