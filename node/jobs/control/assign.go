package control

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/consensus/plan/schedule"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/jobs"
	requests "github.com/hopmesh/hopmesh/node/jobs/recipe"
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
	Knows    plan.Kind    `json:"knows"`    // as plan.Member has it
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
	if in := s.Members[from]; in.Version != r.Version || in.Computes != r.Computes || in.Knows != cmp.Or(r.Knows, in.Knows) {
		// The node may have restarted as another version since the last round.
		var err error
		s, err = o.plan.Apply(ctx, plan.UpdateMember{ID: from, Version: r.Version, Computes: r.Computes, Device: in.Device, Memory: in.Memory, Speed: in.Speed, Knows: cmp.Or(r.Knows, in.Knows)})
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
	c, can := plan.RenewJob(aside(s, o.answers), r.ID, o.answers)
	if !can {
		return false, nil
	}
	c = scheduled(s, together(s, c))
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
		if j.State == plan.Running && unlikeOf(s, j, j.Nodes) != "" {
			next, err := o.plan.Apply(ctx, plan.AssignJob{ID: j.ID, Generation: j.Generation})
			if errs = append(errs, err); err == nil {
				s = next
			}
		}
	}
	s, err := o.renumber(ctx, s)
	errs = append(errs, err)
	s, err = o.free(ctx, s)
	errs = append(errs, err)
	begin, _ := plan.NextJobs(aside(s, o.answers), o.answers)
	for _, c := range begin {
		c = alone(s, c)
		if c.Generation == 0 && unlikeOf(s, s.Jobs[c.ID], c.Nodes) != "" {
			continue // it waits, see outlook
		}
		_, err := o.plan.Apply(ctx, scheduled(s, together(s, c)))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// scheduled adds what the epochs of a job begin with, if all members know of schedules. What its
// nodes have to measure first, they propose themselves.
func scheduled(s *plan.State, c plan.AssignJob) plan.AssignJob {
	if len(c.Nodes) == 0 || !s.KnowsSchedules() {
		return c
	}
	c.Scheduled = true
	j := s.Jobs[c.ID]
	r := requests.Read(j)
	by := j.Strategy
	if by == strategy.Auto && len(c.Nodes) == 1 {
		by = strategy.Single
	}
	at := strategy.Place{Nodes: len(c.Nodes), Shards: len(s.Datasets[j.Dataset].Shards)}
	part, known := requests.Strategies.Declared().Begins(by, &r.Sharing, at)
	if !known {
		return c
	}
	c.Begins = &schedule.Entry{Strategy: by, Part: part, Rate: r.Rate}
	if by != j.Strategy {
		c.Begins.Why = lone(s, j)
	}
	if len(r.Sweep) > 0 {
		c.Begins.Rate = 0
	}
	return c
}

// together puts a running job back into the queue rather than give it to nodes that
// may not understand each other.
func together(s *plan.State, c plan.AssignJob) plan.AssignJob {
	if c.Generation != 0 && unlikeOf(s, s.Jobs[c.ID], c.Nodes) != "" {
		c.Nodes, c.Owners = nil, nil
	}
	return c
}
