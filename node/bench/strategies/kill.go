package strategies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/shape"
)

// measureKills measures the time from the death of a node to the next step of a job, and
// what is lost by it.
func measureKills(ctx context.Context, b *suite) (figures []bench.Figure, err error) {
	for _, who := range []string{"a node", "the leader"} {
		f, err := interrupt(ctx, b, who)
		if err != nil {
			return nil, fmt.Errorf("kill %s: %w", who, err)
		}
		figures = append(figures, f...)
	}
	return figures, nil
}

// interrupt kills a node in the middle of a job.
func interrupt(ctx context.Context, b *suite, who string) (figures []bench.Figure, err error) {
	b.run.Progress("  kill -9 of %s", who)
	c, stop, err := startNodes(ctx, b, "killed "+who, sharedNodes, shape.Link{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	usual := graphSpecs[0].made(interruptedWidth, 0)
	usual.Replicas = nil
	on := remote{c.Nodes[0].API}
	if _, err := on.GenerateDataset(ctx, usual, func(api.DatasetEvent) {}); err != nil {
		return nil, err
	}
	id, err := on.StartJob(ctx, interrupted.ask(usual.Name, "leap", interruptedEpochs))
	if err != nil {
		return nil, err
	}
	s, err := c.Nodes[0].API.Status(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(c.Nodes, func(p *shape.Process) bool { return (p.Name == s.Leader) == (who == "the leader") })
	victim, survivor := c.Nodes[at], c.Nodes[(at+1)%len(c.Nodes)]
	l := watcher{ctx: ctx, on: survivor.API, id: id}
	// In the middle of the second epoch, at the earliest.
	if err := l.until("the job is under way", func(j api.Job) bool { return l.after > j.Steps+j.Steps/2 && j.Step < j.Steps }); err != nil {
		return nil, err
	}
	generation := l.job.Generation
	if err := victim.Kill(); err != nil {
		return nil, err
	}
	begin := time.Now()
	// Steps that are under way elsewhere may still be finished.
	before := l.after
	err = l.until("the job goes on", func(j api.Job) bool {
		if j.Generation == generation {
			before = max(before, l.after)
			return false
		}
		return l.live
	})
	if err != nil {
		return nil, err
	}
	lost := max(0, before-l.after+1) // the first step after the kill is already counted
	name := fmt.Sprintf("kill -9 of %s", who)
	return []bench.Figure{
		bench.Below(name+": until the next step is made", "s", time.Since(begin).Seconds(), 8),
		{Name: name + ": steps lost", Value: float64(lost), Unit: "steps", Bar: "at most 1 steps", Holds: lost <= 1},
	}, nil
}

// A watcher follows a job through one node.
type watcher struct {
	ctx context.Context
	on  *api.Client
	id  string

	job   api.Job
	after int  // steps, of all epochs
	live  bool // its nodes report steps
}

// until polls until a condition holds.
func (l *watcher) until(what string, holds func(api.Job) bool) error {
	ctx, cancel := context.WithTimeoutCause(l.ctx, time.Minute, errors.New("it takes too long"))
	defer cancel()
	for {
		j, err := l.on.Job(ctx, l.id)
		if err == nil && (j.State == "failed" || j.State == "done") {
			return fmt.Errorf("the job is %s: %s", j.State, j.Error)
		}
		if err == nil {
			l.job, l.live = j, j.Steps > 0
			if l.live {
				l.after = (j.Epoch-1)*j.Steps + j.Step
			}
			if holds(j) {
				return nil
			}
		}
		if err := bench.Pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("wait until %s: %w", what, err)
		}
	}
}
