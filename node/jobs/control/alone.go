package control

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/auto"
	requests "github.com/hopmesh/hopmesh/node/jobs/recipe"
)

// A small job of strategy auto is trained by one node that holds all shards, as if it were of
// strategy single: the others would only wait for each other. The plan needs no word for it, since
// such a job is a shared one of which one node owns all shards. So a leader of an earlier version
// gives it back to all of them, and it goes on.

// lone returns why a job is for one node, "" if it is not. It follows from the plan alone. A job
// that several nodes have begun stays with them.
func lone(s *plan.State, j plan.Job) (why string) {
	d, in := s.Datasets[j.Dataset]
	began := j.State == plan.Running || len(j.History) > 0
	if j.Strategy != strategy.Auto || j.Ended() || !in || began && len(j.Nodes) != 1 || !s.KnowsSchedules() {
		return ""
	}
	holders := plan.HoldersOfAll(d)
	if len(holders) == 0 || j.State == plan.Running && !slices.Contains(holders, j.Nodes[0]) {
		return ""
	}
	o := auto.Outline{Recipe: requests.Read(j), About: requests.About(d), Sparse: d.About.Sparse}
	for i := range d.Shards {
		o.Bytes += d.Shards[i].Bytes
	}
	for _, id := range holders {
		if m := s.Members[id].Memory; m > 0 && (o.Memory == 0 || m < o.Memory) {
			o.Memory = m
		}
	}
	why, _ = auto.Alone(&o)
	return why
}

// staying returns a function that reports whether a node answers and is not about to leave.
func staying(s *plan.State, answers func(id string) bool) func(id string) bool {
	return func(id string) bool { return answers(id) && !s.Members[id].Leaving }
}

// aside returns a plan in which jobs for one node are of strategy single, for the functions of
// package plan that decide who runs what, unless all owners are to take one. One whose node is away
// has learnt nothing there: what it has is soon learnt again.
func aside(s *plan.State, answers func(id string) bool) *plan.State {
	t, copied := *s, false
	for id, j := range s.Jobs {
		if lone(s, j) == "" {
			continue
		}
		if !copied {
			t.Jobs, copied = maps.Clone(s.Jobs), true
		}
		all := spread(s, j, answers)
		if !all {
			j.Strategy = strategy.Single
		}
		if (all || j.State == plan.Queued) && len(j.Nodes) > 0 && !staying(s, answers)(j.Nodes[0]) {
			j.History = nil
		}
		t.Jobs[id] = j
	}
	return &t
}

// spread reports whether a job for one node is for all owners now: no node that holds all shards can
// take it, and the others hold them together.
func spread(s *plan.State, j plan.Job, answers func(id string) bool) bool {
	d, stays := s.Datasets[j.Dataset], staying(s, answers)
	if j.State == plan.Running && answers(j.Nodes[0]) || slices.ContainsFunc(plan.HoldersOfAll(d), stays) {
		return false
	}
	for i := range d.Shards {
		if !slices.ContainsFunc(d.Nodes, func(id string) bool { return stays(id) && d.Holds(id, i) }) {
			return false
		}
	}
	return true
}

// alone returns an assignment of a job by the plan of aside as the plan itself has it.
func alone(s *plan.State, c plan.AssignJob) plan.AssignJob {
	if s.Jobs[c.ID].Strategy == strategy.Auto && len(c.Nodes) == 1 && len(c.Owners) == 0 {
		c.Owners = make([]int, len(s.Datasets[s.Jobs[c.ID].Dataset].Shards))
	}
	return c
}

// free puts jobs back into the queue that one node trains which is away, if another one can begin
// them anew. It returns the plan after that.
func (o *Orders) free(ctx context.Context, s *plan.State) (*plan.State, error) {
	var errs []error
	stays := staying(s, o.answers)
	for _, j := range s.JobsInOrder() {
		if j.State != plan.Running || len(j.Nodes) != 1 || stays(j.Nodes[0]) || lone(s, j) == "" {
			continue
		}
		if !j.Stopping && !slices.ContainsFunc(plan.HoldersOfAll(s.Datasets[j.Dataset]), stays) {
			continue
		}
		o.log.Info("a job is begun anew on another node", "job", j.ID, "without", s.NameOf(j.Nodes[0]))
		next, err := o.plan.Apply(ctx, plan.AssignJob{ID: j.ID, Generation: j.Generation})
		if errs = append(errs, err); err == nil {
			s = next
		}
	}
	return s, errors.Join(errs...)
}
