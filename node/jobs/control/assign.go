package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/jobs"
	"github.com/hopmesh/hopmesh/node/lead"
)

// renewal is a request for a new generation, with the program that asks.
type renewal struct {
	jobs.Renewal
	Program
}

// Program is which hopmesh a node runs.
type Program struct {
	Version  string       `json:"version"`
	Computes plan.Numbers `json:"computes"` // the numbers of computing that it can follow
}

// onRenew starts a new generation of a job because a node that shares it can't go on in this
// one. It reports whether it did.
func (o *Orders) onRenew(ctx context.Context, from string, r renewal) (bool, error) {
	s := o.plan.State()
	j, in := s.Jobs[r.ID]
	switch {
	case !in || j.State != plan.Running || j.Generation != r.Generation:
		return false, nil // the node will read that
	case !slices.Contains(j.Nodes, from):
		return false, mesh.Refuse(lead.Conflict, "node %s has no part in job %s", s.NameOf(from), r.ID)
	}
	if in := s.Members[from]; in.Version != r.Version || in.Computes != r.Computes {
		// The node may have restarted as another version since the last round.
		var err error
		s, err = o.plan.Apply(ctx, plan.UpdateMember{ID: from, Version: r.Version, Computes: r.Computes, Device: in.Device, Memory: in.Memory, Speed: in.Speed, Knows: in.Knows})
		if err != nil {
			return false, err
		}
	}
	if r.Unreached {
		o.apart.Decide(ctx, r.ID, r.Generation)
		if s = o.plan.State(); s.Jobs[r.ID].State != plan.Running || s.Jobs[r.ID].Generation != r.Generation {
			return false, nil // meanwhile
		}
		if d := s.Datasets[j.Dataset]; slices.ContainsFunc(d.Owners(), o.apart.LeftOut(d)) {
			o.plan.Hint() // a round gives its shards to others first
			return false, nil
		}
	}
	c, can := plan.RenewJob(s, r.ID, o.answers)
	if !can {
		return false, nil
	}
	c = together(s, c)
	o.log.Info("a job is begun anew", "job", r.ID, "node", s.NameOf(from), "why", r.Why)
	if _, err := o.plan.Apply(ctx, c); err != nil {
		return false, err
	}
	o.plan.Hint() // a round assigns it, if it waits now
	return true, nil
}

// Assign gives waiting jobs to free nodes, and shared jobs to other nodes if theirs can't go
// on or have changed. It is a step of the leader's rounds.
func (o *Orders) Assign(ctx context.Context, s *plan.State) error {
	if len(s.Jobs) == 0 {
		return nil
	}
	var errs []error
	for _, j := range s.JobsInOrder() {
		// A node may report its version after the job was assigned to it.
		if j.State == plan.Running && unlike(s, j, j.Nodes) != "" {
			next, err := o.plan.Apply(ctx, plan.AssignJob{ID: j.ID, Generation: j.Generation})
			if errs = append(errs, err); err == nil {
				s = next
			}
		}
	}
	begin, _ := plan.NextJobs(s, o.answers)
	for _, c := range begin {
		if c.Generation == 0 && unlike(s, s.Jobs[c.ID], c.Nodes) != "" {
			continue // it waits, see outlook
		}
		_, err := o.plan.Apply(ctx, together(s, c))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// together puts a running job back into the queue rather than give it to nodes that
// may not understand each other.
func together(s *plan.State, c plan.AssignJob) plan.AssignJob {
	if c.Generation != 0 && unlike(s, s.Jobs[c.ID], c.Nodes) != "" {
		c.Nodes, c.Owners = nil, nil
	}
	return c
}

// unlike returns a sentence if nodes can't run a job because they compute by other numbers than it
// was made for: they would come to other bits, or not understand each other.
func unlike(s *plan.State, j plan.Job, nodes []string) string {
	for _, id := range nodes {
		if m := s.Members[id]; !m.Computes.Has(j.Computing) {
			return fmt.Sprintf("job %s computes by number %d, and node %s runs hopmesh %s, which computes by %s: install a version on it that computes by %d, as `hopmesh members` shows, and the job can go on; or start the job anew",
				j.ID, max(j.Computing, 1), m.Name, m.Version, m.Computes, max(j.Computing, 1))
		}
	}
	return ""
}

// commonNumber returns the highest number by which all nodes compute, or a sentence if there is
// none.
func commonNumber(s *plan.State, nodes []string) (n uint32, unlike string) {
	for _, a := range nodes {
		for _, b := range nodes {
			if a, b := s.Members[a], s.Members[b]; a.Computes.Common(b.Computes) == 0 {
				return 0, fmt.Sprintf("nodes that share a job must compute by the same number, and node %s (hopmesh %s) computes by %s, but node %s (hopmesh %s) by %s: install the same version on both",
					a.Name, a.Version, a.Computes, b.Name, b.Version, b.Computes)
			}
		}
	}
	// Ranges of which each two have a number in common have one in common all together.
	for k, id := range nodes {
		if most := max(s.Members[id].Computes.Max, 1); k == 0 || most < n {
			n = most
		}
	}
	return n, ""
}
