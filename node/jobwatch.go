package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/api"
)

// watchEvery is how often the node that runs a job is asked how far it is.
const watchEvery = 250 * time.Millisecond

// WatchJob tells what the plan comes to know of a job, and between that how far it
// is. The last epoch that is known comes first.
func (b backend) WatchJob(ctx context.Context, id string, tell func(api.JobEvent)) (api.Job, error) {
	m, err := b.in()
	if err != nil {
		return api.Job{}, err
	}
	if _, _, err := m.job(ctx, id); err != nil {
		return api.Job{}, err
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	w := watcher{member: m, tell: tell, epoch: -1, moved: time.Now()}
	for {
		changed := m.plan.Changed()
		s := m.plan.State()
		j, ok := s.Jobs[id]
		if !ok {
			return api.Job{}, api.Conflict("job %s was removed meanwhile", id)
		}
		w.look(s, j)
		if j.Ended() {
			return m.shown(s, j, live{}), nil
		}
		select {
		case <-changed:
		case <-tick.C:
			w.progress(ctx, j)
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errStopping) {
				return api.Job{}, api.Unavailable("this node is stopping; the job goes on, when this node is back if it runs here, and `hopmesh train watch %s` shows it", id)
			}
			return api.Job{}, api.Unavailable("nobody watches any more")
		}
	}
}

// watcher is what one who watches was told.
type watcher struct {
	*member
	tell     func(api.JobEvent)
	state    plan.JobState
	problem  string
	epoch    int // -1: nothing yet
	last     api.JobProgress
	notified []string  // notes
	moved    time.Time // when the job last got on, or what keeps it was asked for
}

// stillAfter is for how long a job may stand still until those that run it are asked why,
// and how often they are.
const stillAfter = 20 * time.Second

// still tells why a job does not get on, if its nodes know.
func (w *watcher) still(ctx context.Context, j plan.Job) {
	if time.Since(w.moved) < stillAfter {
		return
	}
	w.moved = time.Now()
	for _, said := range w.saidOf(ctx, w.plan.State(), j) {
		w.tell(api.JobEvent{Note: said})
	}
}

// look tells what is new in the plan.
func (w *watcher) look(s *plan.State, j plan.Job) {
	w.note(j.Notes)
	w.note(j.Diverged)
	if j.State != w.state {
		w.state = j.State
		sum := w.summary(s, j)
		w.tell(api.JobEvent{State: &sum})
	}
	if p := w.jobProblem(s, j); p != w.problem {
		if w.problem = p; p != "" {
			w.tell(api.JobEvent{Note: p})
		}
	}
	if w.epoch < 0 || j.Last() < w.epoch { // at first, or when the job begins anew
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

// ahead is the model that does best in the first of these epochs.
func ahead(history []plan.Epoch) plan.Epoch {
	first := history[0]
	for _, e := range history[1:] {
		if e.Epoch != first.Epoch {
			break
		}
		judged := e.Eval != nil && e.Eval.Val != nil
		if judged && e.Better(first) || !judged && e.Loss < first.Loss {
			first = e
		}
	}
	return first
}

// note tells each note once.
func (w *watcher) note(notes []string) {
	for _, n := range notes {
		if n != "" && !slices.Contains(w.notified, n) {
			w.notified = append(w.notified, n)
			w.tell(api.JobEvent{Note: n})
		}
	}
}

// progress tells how far the job is, if that is known and new.
func (w *watcher) progress(ctx context.Context, j plan.Job) {
	l := w.liveOf(ctx, j)
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
