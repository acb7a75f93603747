package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/hopmesh/hopmesh/node/api"
)

// Strategies compares how nodes share a job: by counted bytes, and by time on a network
// that is shaped. What it trains is in strategies_cases.go.
func Strategies(ctx context.Context, cfg Config, stdout, stderr io.Writer) error {
	// Before anything takes long: whether there can be a picture.
	if err := plot(cfg.Plot, nil, ""); err != nil {
		return err
	}
	if err := plotPiped(cfg.PlotPipe, nil); err != nil {
		return err
	}
	return suite(ctx, cfg, stdout, stderr, strategyParts)
}

func strategyParts(b *bench) []part {
	return []part{
		{"bytes", "bytes that strategies send", b.sent},
		{"time", "the ladders, and time on a shaped network", b.shaped},
		{"cost", "what sharing costs", b.overhead},
		{"kill", "a node that is killed", b.killed},
		{"grappa", "groups that train in isolation", b.isolated},
		{"pipe", "pipelines beside graph parallelism", b.piped},
	}
}

// StrategyParts names what Strategies can be told to measure only.
func StrategyParts() (names []string) {
	for _, p := range strategyParts(nil) {
		names = append(names, p.name)
	}
	return names
}

// A host is a node that is given work: in this process, or in another by its API.
type host interface {
	GenerateDataset(ctx context.Context, r api.GenerateRequest, tell func(api.DatasetEvent)) (api.Dataset, error)
	StartJob(ctx context.Context, r api.TrainRequest) (string, error)
	WatchJob(ctx context.Context, id string, tell func(api.JobEvent)) (api.Job, error)
	RemoveJob(ctx context.Context, id string) error
}

// remote is a host in another process.
type remote struct{ *api.Client }

func (r remote) StartJob(ctx context.Context, t api.TrainRequest) (string, error) {
	id, err := r.Client.StartJob(ctx, t)
	return id.ID, err
}

// errRefusal is why a job can't be.
type errRefusal struct{ error }

// trained lets a job run to its end, and forgets it. What can't be trained so is an
// errRefusal.
func trained(ctx context.Context, on host, r api.TrainRequest, tell func(api.JobEvent)) (api.Job, error) {
	id, err := on.StartJob(ctx, r)
	if e, ok := errors.AsType[*api.Error](err); ok && (e.Status == http.StatusBadRequest || e.Status == http.StatusConflict) {
		return api.Job{}, errRefusal{err}
	}
	if err != nil {
		return api.Job{}, err
	}
	j, err := on.WatchJob(ctx, id, tell)
	switch {
	case err != nil:
		return j, err
	case j.State == "failed" && len(j.History) == 0:
		return j, errors.Join(errRefusal{errors.New(j.Error)}, on.RemoveJob(ctx, id))
	case j.State != "done" || len(j.History) != *r.Epochs:
		return j, fmt.Errorf("job %s (%s, %s) is %s after %d epochs: %s", id, r.Model, r.Strategy, j.State, len(j.History), j.Error)
	}
	return j, on.RemoveJob(ctx, id)
}

// silent is for jobs that nobody watches.
func silent(api.JobEvent) {}
