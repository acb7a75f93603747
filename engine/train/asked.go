package train

import (
	"context"
	"errors"
	"time"
)

// ErrAsked is what the cause of a context that a run ends by is (see errors.Is), where
// somebody asked for that and no node is missing.
var ErrAsked = errors.New("somebody asked for it")

// askedPatience is for how long a run goes on then, if nodes have to come together before
// what they have learnt can be kept.
const askedPatience = 5 * time.Second

// patient is a context for training: the run's own or, where stages settle, one that ends
// when they have, if somebody asked for the end. Whoever calls it calls end.
func (t *trainer) patient(ctx context.Context) (patient context.Context, end func()) {
	if !t.settles() {
		return ctx, func() {}
	}
	patient, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	t.quit = cancel
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if !errors.Is(cause, ErrAsked) {
			cancel(cause)
			return
		}
		t.asked.Store(&cause)
		late := time.NewTimer(askedPatience)
		defer late.Stop()
		select {
		case <-late.C:
			cancel(cause)
		case <-patient.Done():
		}
	})
	return patient, func() { stop(); cancel(nil) }
}

// settles says whether a checkpoint takes that stages settle, which they may after any
// epoch.
func (t *trainer) settles() bool {
	for _, l := range t.learners {
		if l.piped == nil || !l.piped.worker.Parted() || !l.rests(1) {
			return false
		}
	}
	return true
}

// left ends a run that was asked to, once what it has learnt is kept.
func (t *trainer) left(ctx context.Context) error {
	cause := t.asked.Load()
	if cause == nil || !t.restful() {
		return nil
	}
	t.quit(*cause)
	return t.stopped(ctx)
}
