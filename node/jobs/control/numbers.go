package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/recipe"
	requests "github.com/hopmesh/hopmesh/node/jobs/recipe"
)

// unlikeOf returns the first of these nodes that computes by other numbers than a job, or "": it
// would come to other bits, or not understand the others.
func unlikeOf(s *plan.State, j plan.Job, nodes []string) string {
	for _, id := range nodes {
		if !s.Members[id].Computes.Has(j.Computing) {
			return id
		}
	}
	return ""
}

// unlike returns a sentence on why a job waits, if one of these nodes computes by other numbers.
func unlike(s *plan.State, j plan.Job, nodes []string) string {
	id := unlikeOf(s, j, nodes)
	if id == "" {
		return ""
	}
	m, number := s.Members[id], max(j.Computing, 1)
	until := fmt.Sprintf("nodes that compute by %d hold all of dataset %s, or all nodes of the mesh compute by another number", number, j.DatasetName)
	if why := stays(j); why != "" {
		until = fmt.Sprintf("nodes that compute by %d hold all of dataset %s, since %s", number, j.DatasetName, why)
	}
	return fmt.Sprintf("job %s waits, since it computes by number %d and node %s (hopmesh %s) by %s: it goes on by itself once %s", j.ID, number, m.Name, m.Version, m.Computes, until)
}

// stays says why a job can't go on by another number than its own, if it can't.
func stays(j plan.Job) string {
	switch r := requests.Read(j); {
	case r.Sharing.Deterministic:
		return "it is deterministic, and another number gives other bits"
	case j.Computing < recipe.Continues && recipe.Continues > 1:
		return fmt.Sprintf("this version goes on with jobs from number %d on", recipe.Continues)
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

// renumber lets jobs that wait go on by the number of all nodes, if no node computes by theirs any
// more: the mesh has been upgraded under them. It returns the plan after that.
func (o *Orders) renumber(ctx context.Context, s *plan.State) (*plan.State, error) {
	if s.May(plan.SetComputing{}) != nil {
		return s, nil //nolint:nilerr // jobs wait until all members know how
	}
	all := make([]string, 0, len(s.Members))
	for id := range s.Members {
		all = append(all, id)
	}
	number, _ := commonNumber(s, all)
	if number == 0 {
		return s, nil
	}
	var errs []error
	for _, j := range s.JobsInOrder() {
		lost := j.State == plan.Queued && stays(j) == ""
		for _, id := range all {
			lost = lost && !s.Members[id].Computes.Has(j.Computing)
		}
		if !lost {
			continue
		}
		o.log.Warn("a job goes on by another number of computing, by which all nodes compute", "job", j.ID, "from", max(j.Computing, 1), "to", number)
		next, err := o.plan.Apply(ctx, plan.SetComputing{ID: j.ID, From: j.Computing, To: number})
		if errs = append(errs, err); err == nil {
			s = next
		}
	}
	return s, errors.Join(errs...)
}

// LeftOut returns a function that reports whether a node must own nothing of a dataset for now:
// it is one of out, or it computes by other numbers than the oldest job that nodes share on the
// dataset, which can go on without it.
func LeftOut(s *plan.State, d plan.Dataset, answers, out func(id string) bool) func(id string) bool {
	for _, j := range s.JobsInOrder() {
		if j.Dataset != d.ID || !j.Shared() || j.Ended() {
			continue
		}
		also := func(id string) bool { return out(id) || unlikeOf(s, j, []string{id}) != "" }
		if d.Lacks(func(id string) bool { return answers(id) && !also(id) }).Unserved == 0 {
			return also
		}
		break
	}
	return out
}
