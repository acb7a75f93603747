// Package leap implements LeapGNN: a root is computed where its features are, by the
// owner or, if that has more to do than others, by a node that holds a copy. So models go
// to the features, or by default stay, where travelling would change nothing.
package leap

import (
	"strconv"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Deal returns the dealer of a job. Models stay unless slots were requested, or local
// updates, which make models differ: moving equal models is useless.
func Deal(l peer.Layout, s strategy.Settings) (deal.Dealer, error) {
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
		// Models that differ should meet the roots of all nodes: the time of epochs
		// does not show what they learn with fewer slots.
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

// fixed reports whether the number of slots was given.
func fixed(merge string) bool { return merge != "" && merge != strategy.Auto }

// Strategy trains mini-batches whose seed vertices go to the owners of their shards.
// With leap.sync_every models travel between the nodes and update themselves between
// averages.
var Strategy = train.Descriptor{
	Name: strategy.Leap, Exact: true, Deal: Deal,
	Asking: func(s *strategy.Settings) gather.Options {
		return gather.Options{Apart: s.Leap.Apart, Repeated: s.Leap.Repeated}
	},
	Same: func(a, b *strategy.Settings) bool { return a.Leap.SyncEvery == b.Leap.SyncEvery },
	New: func(t *train.Trainer) (train.Method, error) {
		b := batched.New(t)
		if every := t.Recipe.Sharing.Averages(); every > 1 && !t.Session.Alone() {
			b.Updates = batched.NewTours(b, every)
		}
		return b, nil
	},
}
