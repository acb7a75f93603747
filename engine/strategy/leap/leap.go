// Package leap is LeapGNN's way: a root is computed where its features are, by the owner
// or, where that has more to do than others, by who holds a copy; and models travel if
// anything does.
package leap

import (
	"strconv"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Strategy is the strategy.
type Strategy struct{}

var _ strategy.Strategy = Strategy{}

// Name implements strategy.Strategy.
func (Strategy) Name() string { return strategy.Leap }

// New implements strategy.Strategy. Models stay unless slots were asked for, or local
// updates, which make them differ: while they are all the same, moving them moves
// nothing.
func (Strategy) New(l strategy.Layout, s strategy.Settings) (strategy.Dealer, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	migrate := s.Leap.Mode == "migrate"
	if s.Leap.Mode == "" || s.Leap.Mode == strategy.Auto {
		migrate = s.Leap.SyncEvery > 1 || fixed(s.Leap.Merge)
	}
	if !migrate {
		return &stay{layout: l, deterministic: s.Deterministic, places: newPlaces(&l, &s)}, nil
	}
	m := &migration{layout: l, deterministic: s.Deterministic, places: newPlaces(&l, &s), tuner: newTuner(&l)}
	switch {
	case s.Leap.Merge == "off", s.Leap.SyncEvery > 1 && !fixed(s.Leap.Merge):
		// Models that differ should meet the roots of all nodes: the time of epochs says
		// nothing of what they learn with fewer slots.
		m.tuner.fix(l.Nodes)
	case fixed(s.Leap.Merge):
		slots, err := strconv.Atoi(s.Leap.Merge)
		if err != nil {
			return nil, err
		}
		m.tuner.fix(slots)
	}
	return m, nil
}

// fixed says whether the number of slots was given.
func fixed(merge string) bool { return merge != "" && merge != strategy.Auto }
