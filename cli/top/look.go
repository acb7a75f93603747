package top

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
	// lookTimeout is how long a node may take to answer. It answers from local state, except
	// about the progress of a job on another node.
	lookTimeout = 5 * time.Second
	// listenAgain is the pause before the events of a node that went away are requested again.
	listenAgain = time.Second
)

// snapshot is the state of a mesh as one node sees it.
type snapshot struct {
	Status  api.Status       `json:"status"`
	Members []api.Member     `json:"members"`
	Jobs    []api.JobSummary `json:"jobs"` // running, then queued, then ended, the latest first
	// Job is the chosen job, else the first of Jobs; null if there is none.
	Job *api.Job `json:"job"`
}

// look asks a node for everything that is shown. It fails only if there is no status; other
// errors become problems of the snapshot.
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
		case ok && refused.Status == http.StatusNotFound: // removed meanwhile
		default:
			s.lack(err)
		}
	}
	return s, nil
}

// lack adds an error to the problems, unless it is there already: requests often fail for the
// same reason.
func (s *snapshot) lack(err error) {
	if text := err.Error(); !slices.Contains(s.Status.Problems, text) {
		s.Status.Problems = append(s.Status.Problems, text)
	}
}

// inOrder returns running jobs first, then queued ones, both oldest first, and then ended ones,
// latest first.
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

// pick returns the chosen job if it still exists, else the first, or "" if there are none.
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

// listen passes on events until ctx ends. Errors of the daemon are ignored here, since look
// reports them.
func listen(ctx context.Context, c *api.Client, report func(api.Event)) {
	for ctx.Err() == nil {
		for e, err := range c.Events(ctx) {
			if err != nil {
				break
			}
			report(e)
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenAgain):
		}
	}
}
