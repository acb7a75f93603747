// Package strategies compares how nodes share a job: by counted bytes, and by time on a
// network that is shaped. What it trains is fixed in cases.go and pipe_cases.go.
package strategies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/shape"
)

// Report is what --json prints: the figures, and all that they are made of.
type Report struct {
	bench.Report
	Sent    []Sent      `json:"sent,omitempty"`
	Ladder  []LadderRow `json:"ladder,omitempty"`
	Columns []ColumnRow `json:"p3_ladder,omitempty"`
	Times   []Timed     `json:"times,omitempty"`

	Isolated []Isolated  `json:"grappa,omitempty"`
	Swept    []SweepCost `json:"grappa_sweeps,omitempty"`

	Volumes []Volume `json:"pipe_volumes,omitempty"`
	Moved   []Moved  `json:"pipe_bytes,omitempty"`
	Piped   []Piped  `json:"pipe_times,omitempty"`

	ladderPicture, pipePicture string // files, or ""
}

// Join adds what another report has. Figures that sum up times of pipelines are made anew, of all.
func (r *Report) Join(o *Report) {
	sums := slices.Concat(pipeFigures(r.Piped), pipeFigures(o.Piped))
	figures := slices.DeleteFunc(slices.Concat(r.Figures, o.Figures), func(f bench.Figure) bool {
		return slices.ContainsFunc(sums, func(s bench.Figure) bool { return s.Name == f.Name })
	})
	r.Sent, r.Ladder, r.Columns, r.Times = append(r.Sent, o.Sent...), append(r.Ladder, o.Ladder...), append(r.Columns, o.Columns...), append(r.Times, o.Times...)
	r.Isolated, r.Swept = append(r.Isolated, o.Isolated...), append(r.Swept, o.Swept...)
	r.Volumes, r.Moved, r.Piped = append(r.Volumes, o.Volumes...), append(r.Moved, o.Moved...), append(r.Piped, o.Piped...)
	r.Figures = append(figures, pipeFigures(r.Piped)...)
	for _, n := range o.Notes {
		if !slices.Contains(r.Notes, n) {
			r.Notes = append(r.Notes, n)
		}
	}
}

// note adds a sentence on what the figures depend on.
func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// A suite is one run, with the report that its parts fill.
type suite struct {
	run    *bench.Run
	report *Report
}

// parts are the parts of the suite, with the names that Config.Only chooses by.
var parts = []struct {
	name, what string
	measure    func(context.Context, *suite) ([]bench.Figure, error)
}{
	{"bytes", "bytes that strategies send", measureBytes},
	{"time", "the ladders, and time on a shaped network", measureTime},
	{"cost", "what sharing costs", measureCost},
	{"kill", "a node that is killed", measureKills},
	{"grappa", "groups that train in isolation", measureGrappa},
	{"pipe", "bytes of pipelines beside graph parallelism", measurePipe},
	{"typed", "a graph with types", measureTyped},
	{"pipe-time", "times of pipelines beside graph parallelism", measurePipeTime},
}

// Parts returns the names of the suite's parts.
func Parts() (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// Measure runs the suite.
func Measure(ctx context.Context, cfg bench.Config, stdout, stderr io.Writer) error {
	// Before anything takes long.
	if err := drawable(cfg); err != nil {
		return err
	}
	for _, name := range cfg.PipeGraphs {
		if known := pipeGraphs(); !slices.Contains(known, name) {
			return fmt.Errorf("--pipe-graphs %s: pipe is timed on no such graph: choose from %s", name, strings.Join(known, ", "))
		}
	}
	report := &Report{ladderPicture: cfg.Plot, pipePicture: cfg.PlotPipe}
	s := bench.Suite{Title: "Strategies"}
	for _, p := range parts {
		s.Parts = append(s.Parts, bench.Part{Name: p.name, What: p.what, Measure: func(ctx context.Context, run *bench.Run) ([]bench.Figure, error) {
			return p.measure(ctx, &suite{run, report})
		}})
	}
	return bench.Measure(ctx, cfg, s, report, stdout, stderr)
}

// A host is a node that runs jobs, in this process or in another.
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

// errRefusal says why a job cannot be trained as asked.
type errRefusal struct{ error }

// runJob runs a job to its end and removes it. A job that cannot be trained as asked gives
// an errRefusal.
func runJob(ctx context.Context, on host, r api.TrainRequest, tell func(api.JobEvent)) (api.Job, error) {
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

// silent ignores the events of a job.
func silent(api.JobEvent) {}

// medianEpoch returns the median time of a job's measured epochs, in seconds.
func medianEpoch(j api.Job) float64 {
	var seconds []float64
	for _, e := range j.History[len(j.History)-measured:] {
		seconds = append(seconds, e.Seconds)
	}
	return stats.Median(seconds)
}

// stepsOf returns how many steps an epoch has.
func stepsOf(d api.Dataset, l load) int {
	return (int(d.SplitSizes[0].Train) + l.batch - 1) / l.batch
}

// startNodes starts nodes as processes, behind links of a kind, and returns how to stop
// them.
func startNodes(ctx context.Context, b *suite, what string, nodes int, l shape.Link) (c *shape.Crew, stop func() error, err error) {
	field, err := shape.New(ctx, nodes, l)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range field.Notes() {
		b.report.Notes = append(b.report.Notes, what+": "+n)
	}
	dir := filepath.Join(b.run.Dir, what)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("make a folder to measure in: %w", err), field.Close())
	}
	if c, err = field.Start(ctx, b.run.Program, dir); err != nil {
		return nil, nil, errors.Join(err, field.Close())
	}
	return c, func() error { return errors.Join(c.Stop(), field.Close()) }, nil
}
