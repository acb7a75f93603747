package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	planned "github.com/hopmesh/hopmesh/consensus/plan/schedule"
	"github.com/hopmesh/hopmesh/engine/schedule"
)

// agreed is the schedule of a job in the plan, for the run of one of its generations. The first
// node proposes entries until the plan has them.
type agreed struct {
	cfg        Config
	id         string
	generation uint64
	work       string
	ctx        context.Context // of the run
	running    sync.WaitGroup

	mu      sync.Mutex
	list    planned.List
	refused error
	changed chan struct{} // closed at the next change
}

var _ schedule.Plan = (*agreed)(nil)

// newAgreed returns the schedule of a job, nil if the plan has none of it.
func newAgreed(ctx context.Context, cfg Config, j plan.Job) *agreed {
	if !j.Scheduled {
		return nil
	}
	return &agreed{cfg: cfg, id: j.ID, generation: j.Generation, work: j.Work(), ctx: ctx, list: j.Schedule, changed: make(chan struct{})}
}

// adopt reads a newer version of the plan.
func (a *agreed) adopt(s *plan.State) {
	if a == nil {
		return
	}
	j := s.Jobs[a.id]
	a.mu.Lock()
	defer a.mu.Unlock()
	if j.Generation != a.generation || j.State != plan.Running || !j.Scheduled {
		return // the run is about to end
	}
	a.list = j.Schedule
	a.tell()
}

// tell wakes whoever waits for a change.
func (a *agreed) tell() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// At implements schedule.Plan.
func (a *agreed) At(epoch int, rate float64) (schedule.Entry, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, known := a.list.At(epoch, a.work, rate)
	return followed(e), known
}

// followed returns an entry as the engine takes it.
func followed(e planned.Entry) schedule.Entry {
	return schedule.Entry{From: e.From, Strategy: e.Strategy, Part: e.Part, Rate: e.Rate, Why: e.Why}
}

// Last implements schedule.Plan.
func (a *agreed) Last() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.list) == 0 {
		return 0
	}
	return a.list[len(a.list)-1].From
}

// Propose implements schedule.Plan.
func (a *agreed) Propose(e schedule.Entry) {
	c := plan.ScheduleJob{ID: a.id, Node: a.cfg.Self, Generation: a.generation, Entry: planned.Entry{
		From: e.From, Strategy: e.Strategy, Part: e.Part, Rate: e.Rate, Why: reason(e.Why),
	}}
	a.running.Go(func() {
		for a.ctx.Err() == nil {
			err := a.cfg.Leader.Schedule(a.ctx, c)
			switch {
			case err == nil:
				return
			case errors.Is(err, ErrRefused):
				a.mu.Lock()
				defer a.mu.Unlock()
				a.refused = err
				a.tell()
				return
			}
			a.cfg.Log.Debug("propose a schedule", "job", a.id, "from", e.From, "err", err)
			select {
			case <-time.After(lookEvery):
			case <-a.ctx.Done():
			}
		}
	})
}

// Await implements schedule.Plan.
func (a *agreed) Await(ctx context.Context, from int) (schedule.Entry, error) {
	return a.await(ctx, func(list planned.List) (planned.Entry, bool) {
		for _, e := range list {
			if e.From == from && e.Generation == a.generation {
				return e, true
			}
		}
		return planned.Entry{}, false
	})
}

// Known implements schedule.Plan.
func (a *agreed) Known(ctx context.Context, epoch int, rate float64) (schedule.Entry, error) {
	return a.await(ctx, func(list planned.List) (planned.Entry, bool) { return list.At(epoch, a.work, rate) })
}

// await waits until a list has what is sought.
func (a *agreed) await(ctx context.Context, find func(planned.List) (planned.Entry, bool)) (schedule.Entry, error) {
	for {
		a.mu.Lock()
		list, refused, changed := a.list, a.refused, a.changed
		a.mu.Unlock()
		if e, found := find(list); found {
			return followed(e), nil
		}
		if refused != nil {
			return schedule.Entry{}, fmt.Errorf("the plan does not take it: %w", refused)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return schedule.Entry{}, context.Cause(ctx)
		}
	}
}

// end waits until nothing is proposed any more. The run's context has ended.
func (a *agreed) end() {
	if a != nil {
		a.running.Wait()
	}
}
