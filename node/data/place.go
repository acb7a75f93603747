package data

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

const (
	// promoteAfter is how long an owner may be silent before another holder owns its
	// shards.
	promoteAfter = 3 * time.Second
	// promoteForJobs is promoteAfter for the dataset of a job that nodes share: none of them
	// can continue without the owner, and a new generation costs less than waiting for it.
	promoteForJobs = time.Nanosecond
	// abandonAfter is how long an importer may be silent before its unfinished imports are
	// removed.
	abandonAfter = 10 * time.Second
	// replaceAfter is how long a node may be silent before its copies are made
	// elsewhere: longer than a restart takes.
	replaceAfter = time.Minute
)

// Placement decides, while this node leads, which nodes hold which shards.
type Placement struct {
	plan Plan
	log  *slog.Logger
	// absent returns how long a member has not answered.
	absent func(id string, now time.Time) time.Duration
	// leftOut reports which nodes a dataset's owners can't reach.
	leftOut func(plan.Dataset) func(id string) bool
}

// Place removes datasets that will never be complete and places the shards of the others.
// It is a step of the leader's rounds.
func (p *Placement) Place(ctx context.Context, s *plan.State) error {
	if len(s.Datasets) == 0 {
		return nil
	}
	now := time.Now()
	weights := plan.Weights(s)
	absent := map[string]time.Duration{}
	nodes := make([]plan.PlaceNode, 0, len(s.Members))
	for id, in := range s.Members {
		gone := p.absent(id, now)
		absent[id] = gone
		nodes = append(nodes, plan.PlaceNode{
			ID: id, Weight: weights[id], Capacity: in.Memory, Stays: !in.Leaving && gone < replaceAfter,
		})
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(s.Datasets)) {
		d := s.Datasets[id]
		if hopeless(d, absent) {
			p.log.Warn("forgot a dataset that its importer can't finish", "dataset", d.Name, "importer", s.NameOf(d.Importer))
			_, err := p.plan.Apply(ctx, plan.RemoveDataset{ID: id})
			errs = append(errs, err)
			continue
		}
		patience := promoteAfter
		if trainedOn(s, id) {
			patience = promoteForJobs
		}
		leftOut := p.leftOut(d)
		for i := range nodes {
			nodes[i].Serving = absent[nodes[i].ID] < patience && !leftOut(nodes[i].ID)
		}
		c, changed := plan.Place(d, nodes)
		if !changed {
			continue
		}
		if _, err := p.plan.Apply(ctx, c); err != nil {
			errs = append(errs, fmt.Errorf("place dataset %s: %w", d.Name, err))
		}
	}
	return errors.Join(errs...)
}

// trainedOn reports whether several nodes share a job on a dataset right now.
func trainedOn(s *plan.State, dataset string) bool {
	for _, j := range s.Jobs {
		if j.State == plan.Running && j.Dataset == dataset && j.Shared() {
			return true
		}
	}
	return false
}

// hopeless reports whether a dataset that is not ready never will be, given how long each
// node has been absent.
func hopeless(d plan.Dataset, absent map[string]time.Duration) bool {
	gone, in := absent[d.Importer]
	if d.Stage == plan.Ready || in && gone < abandonAfter {
		return false
	}
	if d.Stage == plan.Importing {
		return true
	}
	return d.Lacks(func(id string) bool { a, in := absent[id]; return in && a < promoteAfter }).Unserved > 0
}

// MayGo reports whether no dataset needs a leaving node any more, or no other node could
// take its shards.
func (p *Placement) MayGo(id string, s *plan.State) bool {
	needed := slices.ContainsFunc(slices.Collect(maps.Values(s.Datasets)), func(d plan.Dataset) bool {
		return slices.Contains(d.Nodes, id) || d.Stage == plan.Importing && d.Importer == id
	})
	if !needed {
		return true
	}
	for other, in := range s.Members {
		if other != id && !in.Leaving && p.absent(other, time.Now()) < replaceAfter {
			return false
		}
	}
	return true
}
