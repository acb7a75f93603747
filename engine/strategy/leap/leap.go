// Package leap implements LeapGNN: a root is computed where its features are, by the
// owner or, if that has more to do than others, by a node that holds a copy. So models go
// to the features, or by default stay, where travelling would change nothing.
package leap

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Name is what users call the strategy.
const Name = "leap"

// Deal returns the dealer of a job. Models stay unless slots were requested, or local
// updates, which make models differ: moving equal models is useless.
func Deal(l peer.Layout, job strategy.Settings) (deal.Dealer, error) {
	if err := checkSettings(&job); err != nil {
		return nil, err
	}
	s := Of(&job)
	at := newPlaces(&l, job.Deterministic, s.Balance)
	if !s.travels() {
		return &stay{layout: l, deterministic: job.Deterministic, places: at}, nil
	}
	return &migration{layout: l, deterministic: job.Deterministic, places: at, tuner: s.tuner(l.Nodes, l.Members)}, nil
}

// tuner returns the tuner of a job whose models travel.
func (s *Settings) tuner(nodes int, members uint64) tuner {
	t := newTuner(nodes, members)
	switch slots := s.slots(); {
	case slots > 0:
		t.fix(slots)
	case s.Merge == strategy.Off, s.SyncEvery > 1:
		// Models that differ should meet the roots of all nodes: the time of epochs
		// does not show what they learn with fewer slots.
		t.fix(nodes)
	}
	return t
}

// Owners returns a dealer that has each root computed by the owner of its shard.
func Owners(l peer.Layout, deterministic bool) deal.Dealer {
	return &stay{layout: l, deterministic: deterministic, places: newPlaces(&l, deterministic, false)}
}

// check returns an error for a recipe that models which update themselves can't learn: they weigh
// losses by seed vertices, and not by pairs, and rows of vertices are updated together.
func check(r *recipe.Recipe, _ *nn.Model, _ dataset.About) error {
	if every := Of(&r.Sharing).SyncEvery; every > 1 && r.Links != nil {
		return fmt.Errorf("{leap.sync_every} is %d, and the task is link, which adds up gradients in each step: leave it out", every)
	}
	if every := Of(&r.Sharing).SyncEvery; every > 1 && r.Embeddings > 0 {
		return fmt.Errorf("{leap.sync_every} is %d, and {train.embeddings} learns rows of vertices, which are updated in each step: leave it out", every)
	}
	return nil
}

// Strategy trains mini-batches whose seed vertices go to the owners of their shards.
// With leap.sync_every models travel between the nodes and update themselves between
// averages.
var Strategy = train.Descriptor{
	Declaration: declaration, Deal: Deal, Check: check,
	Asking: func(job *strategy.Settings) gather.Options {
		s := Of(job)
		return gather.Options{Apart: !s.Pregather, Repeated: !s.Dedup}
	},
	Cache:    func(job *strategy.Settings) int { return Of(job).Cache },
	Forecast: forecast.Hooks{Volume: forecast.Batched},
	New: func(t *train.Trainer) (train.Method, error) {
		b := batched.New(t)
		if every := Of(&t.Recipe.Sharing).SyncEvery; every > 1 && !t.Session.Alone() {
			b.Updates = batched.NewTours(b, every)
		}
		return b, nil
	},
}
