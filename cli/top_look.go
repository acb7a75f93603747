package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

const (
	// lookTimeout is how long a node may take to say how it is. It answers from what
	// it knows, except on how far a job is on another node.
	lookTimeout = 5 * time.Second
	// listenAgain is how long to wait before the events of a node that went away are
	// asked for again.
	listenAgain = time.Second
)

// A snapshot is one look at a mesh by way of one node.
type snapshot struct {
	Status  api.Status       `json:"status"`
	Members []api.Member     `json:"members"`
	Jobs    []api.JobSummary `json:"jobs"` // those that run first, then those that wait, then the latest that ended
	// Job is the one that was chosen, else the first of Jobs; null: there is none.
	Job *api.Job `json:"job"`
}

// look asks a node for all that is shown of the mesh. It fails only if the node does
// not say how it is: what else it can't tell becomes a problem.
func look(ctx context.Context, c *api.Client, chosen string) (snapshot, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTimeout, fmt.Errorf("the daemon at %s did not answer within %s", c.Addr(), lookTimeout))
	defer cancel()
	status, err := c.Status(ctx)
	if err != nil {
		return snapshot{}, err
	}
	s := snapshot{Status: status, Members: []api.Member{}, Jobs: []api.JobSummary{}}
	if list, err := c.Members(ctx); err == nil {
		s.Members = list
		slices.SortStableFunc(s.Members, func(a, b api.Member) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
		})
	} else {
		s.lack(err)
	}
	if list, err := c.Jobs(ctx); err == nil {
		s.Jobs = inOrder(list)
	} else {
		s.lack(err)
	}
	if id := pick(s.Jobs, chosen); id != "" {
		j, err := c.Job(ctx, id)
		refused, ok := errors.AsType[*api.Error](err)
		switch {
		case err == nil:
			s.Job = &j
		case ok && refused.Status == http.StatusNotFound: // it was removed meanwhile
		default:
			s.lack(err)
		}
	}
	return s, nil
}

// lack notes what could not be asked for, once: what keeps a node from answering one
// question mostly keeps it from the others.
func (s *snapshot) lack(err error) {
	if text := err.Error(); !slices.Contains(s.Status.Problems, text) {
		s.Status.Problems = append(s.Status.Problems, text)
	}
}

// inOrder puts first what runs, then what waits, each in the order in which it came,
// then what has ended, the latest first.
func inOrder(jobs []api.JobSummary) []api.JobSummary {
	running, waiting, ended := []api.JobSummary{}, []api.JobSummary{}, []api.JobSummary{}
	for _, j := range jobs {
		switch j.State {
		case "running":
			running = append(running, j)
		case "queued":
			waiting = append(waiting, j)
		default:
			ended = append(ended, j)
		}
	}
	slices.Reverse(ended)
	return append(append(running, waiting...), ended...)
}

// pick is the chosen job if it is still there, else the first, "" of none.
func pick(jobs []api.JobSummary, chosen string) string {
	for _, j := range jobs {
		if j.ID == chosen {
			return chosen
		}
	}
	if len(jobs) == 0 {
		return ""
	}
	return jobs[0].ID
}

// listen passes on what happens until ctx ends, whatever becomes of the daemon
// meanwhile: that it is gone is told by who looks.
func listen(ctx context.Context, c *api.Client, tell func(api.Event)) {
	for ctx.Err() == nil {
		for e, err := range c.Events(ctx) {
			if err != nil {
				break
			}
			tell(e)
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenAgain):
		}
	}
}
