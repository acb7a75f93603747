package control

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/ongoing"
)

// watchEvery is how often the node that runs a job is asked for its progress.
const watchEvery = 250 * time.Millisecond

// Watch reports epochs and changes of a job as the plan gets them, and its progress in
// between. The last known epoch comes first.
func (c *Jobs) Watch(ctx context.Context, id string, tell func(api.JobEvent)) (api.Job, error) {
	if _, _, err := c.Find(ctx, id); err != nil {
		return api.Job{}, err
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	w := watcher{jobs: c, tell: tell, epoch: -1, moved: time.Now()}
	for {
		changed := c.cfg.Plan.Changed()
		s := c.cfg.Plan.State()
		j, ok := s.Jobs[id]
		if !ok {
			return api.Job{}, api.Conflict("job %s was removed meanwhile", id)
		}
		w.look(s, j)
		if j.Ended() {
			return c.shown(s, j, live{}), nil
		}
		select {
		case <-changed:
		case <-tick.C:
			w.progress(ctx, j)
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), ongoing.ErrStopping) {
				return api.Job{}, api.Unavailable("this node is stopping; the job goes on, when this node is back if it runs here, and `hopmesh train watch %s` shows it", id)
			}
			return api.Job{}, api.Unavailable("nobody watches any more")
		}
	}
}

// watcher remembers what was reported to one client.
type watcher struct {
	jobs     *Jobs
	tell     func(api.JobEvent)
	state    plan.JobState
	problem  string
	epoch    int // -1: nothing yet
	last     api.JobProgress
	notified []string  // notes
	moved    time.Time // when the job last made progress, or its nodes were last asked
}

// stillAfter is how long a job may make no progress before its nodes are asked why, and
// the pause before they are asked again.
const stillAfter = 20 * time.Second

// still reports why a job makes no progress, if its nodes know the reason.
func (w *watcher) still(ctx context.Context, j plan.Job) {
	if time.Since(w.moved) < stillAfter {
		return
	}
	w.moved = time.Now()
	for _, text := range w.jobs.sentencesOf(w.jobs.cfg.Plan.State(), j, w.jobs.ask(ctx, j)) {
		w.tell(api.JobEvent{Note: text})
	}
}

// look reports what is new in the plan.
func (w *watcher) look(s *plan.State, j plan.Job) {
	w.note(j.Notes)
	w.note(j.Diverged)
	if j.State != w.state {
		w.state = j.State
		sum := summary(s, j)
		w.tell(api.JobEvent{State: &sum})
	}
	if p := w.jobs.outlook(s).problem(j); p != w.problem {
		if w.problem = p; p != "" {
			w.tell(api.JobEvent{Note: p})
		}
	}
	if w.epoch < 0 || j.Last() < w.epoch { // at first, or when the job starts over
		w.epoch = max(0, j.Last()-1)
	}
	for i, e := range j.History {
		if e.Epoch <= w.epoch || i > 0 && j.History[i-1].Epoch == e.Epoch {
			continue
		}
		a := togetherOf(j, ahead(j.History[i:]))
		w.tell(api.JobEvent{Epoch: &a})
	}
	w.epoch = max(w.epoch, j.Last())
}

// note reports each note once.
func (w *watcher) note(notes []string) {
	for _, n := range notes {
		if n != "" && !slices.Contains(w.notified, n) {
			w.notified = append(w.notified, n)
			w.tell(api.JobEvent{Note: n})
		}
	}
}

// progress reports the progress of the job, if it is known and new.
func (w *watcher) progress(ctx context.Context, j plan.Job) {
	l := w.jobs.liveOf(ctx, j)
	if !l.Runs {
		return
	}
	w.note(l.Notes)
	w.note(l.Diverged)
	p := api.JobProgress{
		Epoch: l.Progress.Epoch, EpochsTotal: j.Epochs, Step: l.Progress.Step, Steps: l.Progress.Steps, Evaluating: l.Progress.Evaluating,
	}
	if p != w.last && p.Epoch > 0 {
		w.last, w.moved = p, time.Now()
		w.tell(api.JobEvent{Progress: &p})
	}
	w.still(ctx, j)
}
