package node

import (
	"context"
	"errors"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/jobs"
)

// This file is the leader's part of who runs which job.

// renewOrder is a renewal, and the version of the program that asks for it.
type renewOrder struct {
	jobs.Renewal
	Version string `json:"version"`
}

// leaderRenewJob takes a node's word that a job which it shares can't go on as it is.
// It says whether the job has another generation by that.
func (m *member) leaderRenewJob(ctx context.Context, r renewOrder, from string) (bool, error) {
	s := m.plan.State()
	j, in := s.Jobs[r.ID]
	switch {
	case !in || j.State != plan.Running || j.Generation != r.Generation:
		return false, nil // as the node will read
	case !slices.Contains(j.Nodes, from):
		return false, mesh.Refuse(reasonConflict, "node %s has no part in job %s", nameOf(s, from), r.ID)
	}
	if in := s.Members[from]; in.Version != r.Version {
		// It has started again as another version, and a round may not have met it yet.
		var err error
		s, err = m.plan.Apply(ctx, plan.UpdateMember{ID: from, Version: r.Version, Device: in.Device, Memory: in.Memory, Speed: in.Speed})
		if err != nil {
			return false, err
		}
	}
	if r.Unreached {
		m.setApart(ctx, r.Renewal)
		if s = m.plan.State(); s.Jobs[r.ID].State != plan.Running || s.Jobs[r.ID].Generation != r.Generation {
			return false, nil // meanwhile
		}
		if d := s.Datasets[j.Dataset]; slices.ContainsFunc(ownersOf(d), m.leftOut(d)) {
			m.plan.Hint() // for a round to give its shards to others, before the job is
			return false, nil
		}
	}
	c, can := plan.RenewJob(s, r.ID, m.answers)
	if !can {
		return false, nil
	}
	c = together(s, c)
	m.log.Info("a job is begun anew", "job", r.ID, "node", nameOf(s, from), "why", r.Why)
	if _, err := m.plan.Apply(ctx, c); err != nil {
		return false, err
	}
	m.plan.Hint() // if it waits now, for a round to give it to others
	return true, nil
}

// assign gives jobs that wait to nodes that are free, and jobs that nodes share to
// others where those can't go on or have changed.
func (m *member) assign(ctx context.Context, s *plan.State) error {
	if len(s.Jobs) == 0 {
		return nil
	}
	var errs []error
	for _, j := range s.JobsInOrder() {
		// A node may have told its version after the job was given to it.
		if j.State == plan.Running && unlikeVersions(s, j.Nodes) != "" {
			next, err := m.plan.Apply(ctx, plan.AssignJob{ID: j.ID, Generation: j.Generation})
			if errs = append(errs, err); err == nil {
				s = next
			}
		}
	}
	begin, _ := plan.NextJobs(s, m.answers)
	for _, c := range begin {
		if c.Generation == 0 && unlikeVersions(s, c.Nodes) != "" {
			continue // it waits, see jobProblem
		}
		_, err := m.plan.Apply(ctx, together(s, c))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// together puts a running job back into the queue rather than give it to nodes that
// may not understand each other.
func together(s *plan.State, c plan.AssignJob) plan.AssignJob {
	if c.Generation != 0 && unlikeVersions(s, c.Nodes) != "" {
		c.Nodes, c.Owners = nil, nil
	}
	return c
}
