package sample

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// A Loader prefetches what steps need. Several goroutines fill slots in any order; Next
// returns them in the order of steps. Of len(slots) slots, one is in use and the others
// are filled ahead. Its methods must be called from one goroutine.
type Loader[S any] struct {
	slots   []*S
	workers int
	fill    func(ctx context.Context, slot *S, step int) error

	free  chan *S
	ready []chan filled[S] // by step modulo the number of slots
	next  int              // the step that Next returns next
	steps int
	err   error // the error that ended the epoch

	begun   atomic.Int64 // number of steps taken by workers
	limit   atomic.Int64 // steps below it may be taken
	epoch   context.Context
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
}

type filled[S any] struct {
	slot *S
	err  error
}

var errEnded = errors.New("the epoch's loader has ended")

// NewLoader returns an idle loader. fill fills a slot for a step; up to workers
// goroutines call it at a time.
func NewLoader[S any](slots []*S, workers int, fill func(ctx context.Context, slot *S, step int) error) *Loader[S] {
	if len(slots) == 0 || workers < 1 {
		panic("sample: a loader needs a slot and a worker")
	}
	l := &Loader[S]{slots: slots, workers: min(workers, len(slots)), fill: fill, free: make(chan *S, len(slots))}
	for range slots {
		l.ready = append(l.ready, make(chan filled[S], 1))
	}
	return l
}

// Begin starts to fill slots for the steps 0 to steps-1. Slots returned earlier count as
// released. Work ends when all steps are filled, when ctx is done, or with End.
func (l *Loader[S]) Begin(ctx context.Context, steps int) {
	l.End()
	for len(l.free) > 0 {
		<-l.free
	}
	for _, s := range l.slots {
		l.free <- s
	}
	l.next, l.steps, l.err = 0, steps, nil
	l.begun.Store(0)
	l.limit.Store(int64(steps))
	l.epoch, l.cancel = context.WithCancelCause(ctx)
	for range min(l.workers, steps) {
		l.running.Go(l.work)
	}
}

// End stops what Begin started and waits for it.
func (l *Loader[S]) End() {
	if l.cancel == nil {
		return
	}
	l.cancel(errEnded)
	l.running.Wait()
	l.cancel, l.err = nil, errEnded
	for _, c := range l.ready {
		if len(c) > 0 {
			<-c
		}
	}
}

// work fills slots. It takes a slot before a step, so that every taken step can be
// finished, whoever holds the other slots.
func (l *Loader[S]) work() {
	for {
		var slot *S
		select {
		case slot = <-l.free:
		case <-l.epoch.Done():
			return
		}
		step := l.begun.Add(1) - 1
		if step >= l.limit.Load() || l.epoch.Err() != nil {
			l.free <- slot // ends the next worker, too
			return
		}
		err := l.fill(l.epoch, slot, int(step))
		if err != nil {
			l.stopAfter(step)
		}
		l.ready[int(step)%len(l.ready)] <- filled[S]{slot, err}
	}
}

// stopAfter prevents steps after this failed one from starting. Those before it are
// finished, so the reported error does not depend on timing.
func (l *Loader[S]) stopAfter(step int64) {
	for {
		limit := l.limit.Load()
		if limit <= step+1 || l.limit.CompareAndSwap(limit, step+1) {
			return
		}
	}
}

// Next returns the slot of the next step once it is filled. It returns io.EOF after the
// last step. If a step failed it returns the error, then and from then on.
func (l *Loader[S]) Next(ctx context.Context) (*S, error) {
	if l.err != nil {
		return nil, l.err
	}
	if l.next == l.steps {
		return nil, io.EOF
	}
	select {
	case f := <-l.ready[l.next%len(l.ready)]:
		if f.err != nil {
			l.err = f.err
			return nil, l.err
		}
		l.next++
		return f.slot, nil
	case <-l.epoch.Done():
		l.err = context.Cause(l.epoch)
		return nil, l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Following returns the slot that Next returns next, if it is filled already; else nil. It
// must only be read.
func (l *Loader[S]) Following() *S {
	if l.err != nil || l.next == l.steps {
		return nil
	}
	ready := l.ready[l.next%len(l.ready)]
	select {
	case f := <-ready:
		ready <- f // nobody else sends: the next step of this channel needs this slot
		return f.slot
	default:
		return nil
	}
}

// Release returns a slot from Next, so that it can be filled again.
func (l *Loader[S]) Release(slot *S) {
	select {
	case l.free <- slot:
	default:
		panic("sample: a slot was released that was not handed out")
	}
}
