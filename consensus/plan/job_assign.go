package plan

import (
	"fmt"
	"slices"
)

func (c AssignJob) apply(s *State, index uint64) error {
	j, err := s.job(c.ID)
	if err != nil {
		return err
	}
	replaces := c.Generation != 0
	switch {
	case replaces && (j.State != Running || j.Generation != c.Generation):
		return fmt.Errorf("%s (%s): %w", j.ID, j.State, ErrReassigned)
	case !replaces && j.State != Queued:
		return fmt.Errorf("%s (%s): %w", j.ID, j.State, ErrJobState)
	case len(c.Nodes) > 0:
	case replaces && len(c.Owners) == 0:
		s.turn(index)
		s.Jobs[j.ID] = j.laidDown()
		return nil
	default:
		return fmt.Errorf("%w: nobody is to run %s", ErrInvalid, j.ID)
	}
	if err := s.checkMembers(c.Nodes); err != nil {
		return err
	}
	if err := j.checkShares(c.Nodes, c.Owners, len(s.Datasets[j.Dataset].Shards)); err != nil {
		return err
	}
	for _, n := range c.Nodes {
		if other, busy := s.JobOn(n); busy && other.ID != j.ID {
			return fmt.Errorf("%s runs %s: %w", s.Members[n].Name, other.ID, ErrNodeBusy)
		}
	}
	if !j.knownTo(c.Nodes) {
		j.History, j.Thinned, j.Best, j.BestModel, j.Notes, j.Diverged, j.Keepers, j.Schedule = nil, false, 0, 0, nil, nil, nil, nil
		if len(j.Bests) > 0 {
			j.Bests = make([]int, len(j.Bests))
		}
	}
	s.turn(index)
	j.State, j.Nodes, j.Owners, j.Generation = Running, slices.Clone(c.Nodes), slices.Clone(c.Owners), s.Generation
	j.Holders, j.Weights = s.means(j, j.Nodes, j.Owners)
	j.Scheduled = c.Scheduled
	if c.Scheduled {
		if err := j.begin(c.Begins); err != nil {
			return err
		}
	}
	s.Jobs[j.ID] = j
	return nil
}

// checkShares returns an error unless the job can be divided among these nodes this
// way.
func (j Job) checkShares(nodes []string, owners []int, shards int) error {
	switch {
	case j.Shared():
		return checkOwners(owners, shards, len(nodes))
	case len(nodes) != 1 || len(owners) > 0:
		return fmt.Errorf("%w: %s is for one node alone, and is given to %d with %d owners of shards", ErrInvalid, j.ID, len(nodes), len(owners))
	}
	return nil
}

// knownTo reports whether one of these nodes has a checkpoint of the job, from which
// the others take it.
func (j Job) knownTo(nodes []string) bool {
	keepers := j.keepers()
	return slices.ContainsFunc(nodes, func(n string) bool { return slices.Contains(keepers, n) })
}

// keepers returns the nodes that have the job's checkpoints. Before the first epoch,
// they are the nodes that ran it.
func (j Job) keepers() []string {
	if len(j.Keepers) > 0 {
		return j.Keepers
	}
	return j.Nodes
}

// laidDown returns a running job as no longer running: queued again, or stopped if it
// was stopping.
func (j Job) laidDown() Job {
	j.Holders, j.Weights = nil, nil
	if j.Stopping {
		j.State, j.Stopping = Stopped, false
	} else {
		j.State = Queued
	}
	return j
}

// strikeJobs ends the part in running jobs of a node that is no longer a member. A job
// that others ran with it is queued for new nodes; one that ran there alone is stopped.
func (s *State) strikeJobs(m Member) {
	for id, j := range s.Jobs {
		if j.State != Running || !slices.Contains(j.Nodes, m.ID) {
			continue
		}
		if slices.ContainsFunc(j.Nodes, func(n string) bool { return s.Members[n].ID != "" }) {
			s.Jobs[id] = j.laidDown()
			continue
		}
		j.State, j.Stopping, j.Holders, j.Weights = Stopped, false, nil, nil
		j.Error = fmt.Sprintf("node %s, which ran it, is no longer in the mesh: {train.resume %s} begins it anew on another", m.Name, j.ID)
		s.Jobs[id] = j
	}
}
