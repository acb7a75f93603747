// Package p3 implements P3: each node holds some columns of all features, and all nodes
// compute the first layer of every batch together. Only activations travel.
//
// A node's columns are fetched once (Source, Columns). A step has four parts. Ahead
// finds the rows that the first layers of all nodes read, and aggregates for all of
// them. Send multiplies with this node's rows of the weights. Sums adds up the products
// of all nodes for this node's roots. Back exchanges the errors of these sums, and
// computes from them the gradient of this node's rows of the weights. What follows the
// sum each node computes by itself: Method is a batched.Batched with another first
// layer.
//
// Between Send and Sums of a step there may be updates of earlier steps: then its
// partial sums travel while those are computed, and are of older weights.
package p3

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
)

// Deal returns the dealer of a job. Beyond the first layer a root is computed by its
// owner, as with leap, since roots of one owner have more neighbours in common and
// their first layers fewer targets. Or roots are dealt in slices, as published.
func Deal(l peer.Layout, s strategy.Settings) (deal.Dealer, error) {
	if Of(&s).Roots == sliced {
		return centric.Deal(l, s)
	}
	return leap.Owners(l, s.Deterministic), nil
}

// Check returns an error if a model can't be trained so, with what to do.
func Check(m *nn.Model) error {
	if spec := m.Spec(); spec.Related() {
		return fmt.Errorf("p3 does not train %s, whose edges have relations: choose another strategy, such as leap", spec.Named())
	}
	if spec := m.Spec(); spec.Along() {
		return fmt.Errorf("p3 does not train %s, which computes a row for each edge: give {model.edges}=off for gat and gin, or choose another strategy, such as leap", spec.Named())
	}
	if _, err := m.Front(); err != nil {
		return fmt.Errorf("p3 can't share out the columns of features: %w: choose another strategy, such as leap", err)
	}
	return nil
}
