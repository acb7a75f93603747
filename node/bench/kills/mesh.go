package kills

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/shape"
)

// A mesh is the nodes, with what undisturbed jobs of the strategies came to.
type mesh struct {
	field *shape.Field
	crew  *shape.Crew
	calm  map[string]outcome // by undisturbed jobs, by strategy
}

// outcome is what a job has come to.
type outcome struct {
	recipe  string
	weights []string // after each epoch
}

const (
	look     = 10 * time.Millisecond
	patience = 2 * time.Minute
)

func begin(ctx context.Context, run *bench.Run) (m *mesh, err error) {
	m = &mesh{calm: map[string]outcome{}}
	if m.field, err = shape.New(ctx, nodes, shape.Link{}); err != nil {
		return nil, err
	}
	dir := filepath.Join(run.Dir, "kills")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("make a folder to measure in: %w", err), m.field.Close())
	}
	if m.crew, err = m.field.Start(ctx, run.Program, dir); err != nil {
		return nil, errors.Join(err, m.field.Close())
	}
	if _, err := m.crew.Nodes[0].API.GenerateDataset(ctx, dataset(), func(api.DatasetEvent) {}); err != nil {
		return nil, errors.Join(err, m.end())
	}
	return m, nil
}

func (m *mesh) end() error { return errors.Join(m.crew.Stop(), m.field.Close()) }

func (m *mesh) notes() []string { return m.field.Notes() }

// until polls until a condition holds.
func until(ctx context.Context, what string, holds func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it takes too long"))
	defer cancel()
	for {
		ok, err := holds(ctx)
		if ok || err != nil {
			return err
		}
		if err := bench.Pause(ctx, look); err != nil {
			return fmt.Errorf("wait until %s: %w", what, err)
		}
	}
}

// whole waits until all nodes see each other, vote, and own shards. Owners alone don't show it: for
// some seconds a node that has ended owns what it did, though the others count it out.
func (m *mesh) whole(ctx context.Context) error {
	return until(ctx, "all nodes see each other and own shards", func(ctx context.Context) (bool, error) {
		for _, p := range m.crew.Nodes {
			members, err := p.API.Members(ctx)
			if err != nil || !together(members) {
				return false, nil //nolint:nilerr // nodes are starting
			}
		}
		return true, nil
	})
}

// together reports whether one node sees all others alive, and all vote and own shards.
func together(members []api.Member) bool {
	whole := 0
	for _, m := range members {
		if m.Status == "alive" && m.Role != "nonvoter" && m.Shards > 0 {
			whole++
		}
	}
	return whole == nodes
}

// A view is what one node says of a job.
type view struct {
	job   api.Job
	after int // steps, of all epochs
}

func see(ctx context.Context, on *api.Client, id string) (v view, err error) {
	if v.job, err = on.Job(ctx, id); err != nil {
		return view{}, err
	}
	if j := &v.job; j.Steps > 0 {
		v.after = (j.Epoch-1)*j.Steps + j.Step
	}
	return v, nil
}

func (v *view) over() bool {
	return v.job.State == "done" || v.job.State == "failed" || v.job.State == "stopped"
}

// started starts a job of a strategy, and returns when its first step is made.
func (m *mesh) started(ctx context.Context, strategy string) (id string, v view, err error) {
	on := m.crew.Nodes[0].API
	job, err := on.StartJob(ctx, ask(strategy))
	if err != nil {
		return "", v, err
	}
	err = until(ctx, "the job has begun", func(ctx context.Context) (bool, error) {
		v, err = see(ctx, on, job.ID)
		if err == nil && v.job.State == "failed" {
			err = errors.New(v.job.Error)
		}
		return v.after > 0 || v.over(), err
	})
	return job.ID, v, err
}

// ended waits for a job's end, removes it, and returns what it has come to.
func (m *mesh) ended(ctx context.Context, on *api.Client, id string) (o outcome, err error) {
	var v view
	err = until(ctx, "the job is done", func(ctx context.Context) (bool, error) {
		v, err = see(ctx, on, id)
		return err == nil && v.over(), nil
	})
	if err == nil && v.job.State != "done" {
		err = fmt.Errorf("the job is %s: %s", v.job.State, v.job.Error)
	}
	if err != nil {
		return o, err
	}
	o.recipe = string(v.job.Recipe)
	for _, e := range v.job.History {
		o.weights = append(o.weights, e.Weights)
	}
	return o, on.RemoveJob(ctx, id)
}

// undisturbed trains a job of a strategy, once.
func (m *mesh) undisturbed(ctx context.Context, strategy string) (o outcome, err error) {
	if done, is := m.calm[strategy]; is {
		return done, nil
	}
	id, _, err := m.started(ctx, strategy)
	if err != nil {
		return o, err
	}
	if o, err = m.ended(ctx, m.crew.Nodes[0].API, id); err != nil {
		return o, err
	}
	if len(o.weights) != epochs {
		return o, fmt.Errorf("the undisturbed job has %d epochs", len(o.weights))
	}
	m.calm[strategy] = o
	return o, m.whole(ctx) // a node may have been away
}

// from returns the first epoch after which a job has other weights than the undisturbed one, 0: none.
// It is an error to compare two different jobs.
func (o outcome) from(usual outcome) (epoch int, err error) {
	if o.recipe != usual.recipe {
		return 0, fmt.Errorf("it is another job than the undisturbed one, by recipe %s in place of %s", o.recipe, usual.recipe)
	}
	for i, w := range usual.weights {
		if i >= len(o.weights) || o.weights[i] != w {
			return i + 1, nil
		}
	}
	if len(o.weights) > len(usual.weights) {
		return len(usual.weights) + 1, nil
	}
	return 0, nil
}

// disturb does one event. A job that fails by it is part of its row.
func (m *mesh) disturb(ctx context.Context, e event) (r Row, err error) {
	r.event = e
	if err := m.whole(ctx); err != nil {
		return r, err
	}
	usual, err := m.undisturbed(ctx, e.Strategy)
	if err != nil {
		return r, fmt.Errorf("undisturbed: %w", err)
	}
	id, v, err := m.started(ctx, e.Strategy)
	if err != nil {
		return r, err
	}
	pick, share := e.chance()
	r.Node = v.job.Nodes[pick%len(v.job.Nodes)]
	at := slices.IndexFunc(m.crew.Nodes, func(p *shape.Process) bool { return p.Name == r.Node })
	on := m.crew.Nodes[(at+1)%nodes].API
	s, err := on.Status(ctx)
	if err != nil {
		return r, err
	}
	r.Leader = s.Leader == r.Node
	err = until(ctx, "the moment has come", func(ctx context.Context) (bool, error) {
		if v, err = see(ctx, on, id); err != nil {
			return false, err
		}
		return v.after > 0 && float64(v.after) >= share*float64(epochs*v.job.Steps) || v.over(), nil
	})
	if err != nil {
		return r, err
	}
	if v.over() {
		r.Failed = "the job was over before the signal"
		return r, m.crew.Nodes[0].API.RemoveJob(ctx, id)
	}
	r.Epoch = float64(v.after) / float64(max(1, v.job.Steps))
	if err := m.crew.Nodes[at].Signal(signals[e.Signal]); err != nil {
		return r, err
	}
	survive := func() error { return m.survive(ctx, on, id, v, &r) }
	if e.alone() {
		survive = func() error { return m.comeBack(ctx, at, id, v, &r) }
	}
	if failed := survive(); failed != nil {
		if ctx.Err() != nil {
			return r, failed
		}
		r.Failed = failed.Error()
	}
	got, failed := m.ended(ctx, on, id)
	if failed == nil && e.compares() {
		r.From, failed = got.from(usual)
	}
	if failed != nil && r.Failed == "" {
		r.Failed = failed.Error()
	}
	r.Same = failed == nil && r.From == 0
	if e.alone() {
		return r, nil
	}
	return r, m.crew.Restart(ctx, at)
}

// comeBack starts the node of a job that has no other again, and waits until it goes on.
func (m *mesh) comeBack(ctx context.Context, at int, id string, v view, r *Row) error {
	from := time.Now()
	if err := m.crew.Restart(ctx, at); err != nil {
		return err
	}
	return goesOn(ctx, m.crew.Nodes[at].API, id, from, v.after, r)
}

// goesOn waits until a job's nodes report a step, after so many before. What a node says of its job
// counts epochs that the plan has, so that only the progress itself shows where it goes on.
func goesOn(ctx context.Context, on *api.Client, id string, from time.Time, before int, r *Row) error {
	return until(ctx, "the job goes on", func(ctx context.Context) (bool, error) {
		ctx, enough := context.WithCancel(ctx)
		defer enough()
		after := 0
		j, err := on.WatchJob(ctx, id, func(e api.JobEvent) {
			if p := e.Progress; p != nil && after == 0 && p.Steps > 0 {
				after = (p.Epoch-1)*p.Steps + p.Step
				r.Rested = time.Since(from).Seconds()
				enough()
			}
		})
		if after == 0 {
			// The leader may be gone, or the node has just begun.
			r.Rested = time.Since(from).Seconds()
			return err == nil && (&view{job: j}).over(), nil
		}
		r.Lost = max(0, before-after+1) // the first step after the signal is already counted
		return true, nil
	})
}

// survive waits until the other nodes have the job and go on with it.
func (m *mesh) survive(ctx context.Context, on *api.Client, id string, v view, r *Row) error {
	from, generation, before := time.Now(), v.job.Generation, v.after
	err := until(ctx, "the other nodes have the job", func(ctx context.Context) (bool, error) {
		now, err := see(ctx, on, id)
		if err != nil {
			return false, nil //nolint:nilerr // the leader may be gone
		}
		if now.over() {
			return false, fmt.Errorf("the job is %s before others have it: %s", now.job.State, now.job.Error)
		}
		if now.job.Generation == generation {
			before = max(before, now.after) // steps that were under way may still be made
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	r.Noticed = time.Since(from).Seconds()
	return goesOn(ctx, on, id, from, before, r)
}
