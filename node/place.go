package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

const (
	// promoteAfter is how long an owner may be silent before another holder owns its
	// shards.
	promoteAfter = 3 * time.Second
	// promoteForJobs is the same for the dataset of a job that nodes share: none of them
	// gets on without the owner, and a new generation costs less than to wait for it.
	promoteForJobs = time.Nanosecond
	// abandonAfter is how long an importer may be silent before what it has begun is
	// forgotten.
	abandonAfter = 10 * time.Second
	// replaceAfter is how long a node may be silent before its copies are made
	// elsewhere: longer than a restart takes.
	replaceAfter = time.Minute
)

// absences is since when nodes do not answer, as far as the leader of a term
// knows. What gossip says is not enough: it knows nothing of a node that went
// before this one came.
type absences struct {
	term  uint64
	since map[string]time.Time
}

// absent returns for how long a member has not answered, 0 if it does. Only the
// leader's rounds call it.
func (m *member) absent(id string, now time.Time) time.Duration {
	if term := m.plan.Term(); m.silent.term != term {
		m.silent = absences{term: term, since: map[string]time.Time{}}
	}
	alive, known := m.health(id)
	if alive {
		delete(m.silent.since, id)
		return 0
	}
	if _, seen := m.silent.since[id]; !seen {
		m.silent.since[id] = now
	}
	return max(known, now.Sub(m.silent.since[id]), 1)
}

// place keeps the datasets where they belong: it drops those that will never be
// whole, and says of the others who shall hold what.
func (m *member) place(ctx context.Context, s *plan.State) error {
	if len(s.Datasets) == 0 {
		return nil
	}
	now := time.Now()
	usual := plan.UsualSpeed(s)
	absent := map[string]time.Duration{}
	nodes := make([]plan.PlaceNode, 0, len(s.Members))
	for id, p := range s.Members {
		gone := m.absent(id, now)
		absent[id] = gone
		nodes = append(nodes, plan.PlaceNode{
			ID: id, Weight: plan.WeightOf(p.Speed, usual), Capacity: p.Memory, Stays: !p.Leaving && gone < replaceAfter,
		})
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(s.Datasets)) {
		d := s.Datasets[id]
		if hopeless(d, absent) {
			m.log.Warn("forgot a dataset that its importer can't finish", "dataset", d.Name, "importer", nameOf(s, d.Importer))
			_, err := m.plan.Apply(ctx, plan.RemoveDataset{ID: id})
			errs = append(errs, err)
			continue
		}
		patience := promoteAfter
		if trainedOn(s, id) {
			patience = promoteForJobs
		}
		leftOut := m.leftOut(d)
		for i := range nodes {
			nodes[i].Serving = absent[nodes[i].ID] < patience && !leftOut(nodes[i].ID)
		}
		c, changed := plan.Place(d, nodes)
		if !changed {
			continue
		}
		if _, err := m.plan.Apply(ctx, c); err != nil {
			errs = append(errs, fmt.Errorf("place dataset %s: %w", d.Name, err))
		}
	}
	return errors.Join(errs...)
}

// trainedOn says whether several nodes share a job on a dataset right now.
func trainedOn(s *plan.State, dataset string) bool {
	for _, j := range s.Jobs {
		if j.State == plan.Running && j.Dataset == dataset && j.Shared() {
			return true
		}
	}
	return false
}

// hopeless says whether a dataset that is not ready never will be, by who has been
// absent for how long.
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

// mayGo says whether a leaving node has given away what others need, or there is
// nobody to give it to.
func (m *member) mayGo(id string, s *plan.State) bool {
	needed := slices.ContainsFunc(slices.Collect(maps.Values(s.Datasets)), func(d plan.Dataset) bool {
		return slices.Contains(d.Nodes, id) || d.Stage == plan.Importing && d.Importer == id
	})
	if !needed {
		return true
	}
	for other, p := range s.Members {
		if other != id && !p.Leaving && m.absent(other, time.Now()) < replaceAfter {
			return false
		}
	}
	return true
}
