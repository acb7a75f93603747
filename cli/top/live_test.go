package top

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/node/api"
)

// partial is a node that can't tell everything.
type partial struct {
	*clitest.Backend
	job error
}

func (p partial) Members(context.Context) ([]api.Member, error) {
	return nil, api.Unavailable("not now")
}

func (p partial) Job(context.Context, string) (api.Job, error) { return api.Job{}, p.job }

func (p partial) Jobs(context.Context) ([]api.JobSummary, error) { return clitest.Jobs(), nil }

func TestLookAtANodeThatTellsPartOfIt(t *testing.T) {
	for _, c := range []struct {
		job      error
		problems []string
	}{
		{api.Unavailable("not now"), []string{"not now"}}, {api.Conflict("nor that"), []string{"not now", "nor that"}},
		{api.NotFound("there is no job j8"), []string{"not now"}}, // any more
	} {
		problems := c.problems
		c, err := api.NewClient(clitest.Serve(t, partial{clitest.Healthy(), c.job}))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := look(t.Context(), c, "")
		if err != nil || s.Job != nil || len(s.Jobs) != 3 || !slices.Equal(s.Status.Problems, problems) {
			t.Errorf("%+v, %v", s, err)
		}
	}
	gone, err := api.NewClient(clitest.Serve(t, &clitest.Backend{Err: api.NewError(http.StatusInternalServerError, "no")}))
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	if _, err := look(t.Context(), gone, ""); err == nil {
		t.Error("a node that does not say how it is")
	}
}

// talkative sends one event to each client, and then stops.
type talkative struct{ *clitest.Backend }

func (talkative) Events(ctx context.Context) <-chan api.Event {
	return clitest.Play(ctx, []api.Event{{Message: "beta leads"}}, false)
}

func TestEventsAreAskedForAgain(t *testing.T) {
	c, err := api.NewClient(clitest.Serve(t, talkative{clitest.Healthy()}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	heard := 0
	listen(ctx, c, func(e api.Event) {
		if heard++; heard == 2 {
			enough()
		}
	})
	if heard != 2 {
		t.Errorf("%d events", heard)
	}
}
