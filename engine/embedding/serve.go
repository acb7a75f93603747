package embedding

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// serving is which rows other nodes may read: those that a step or an evaluation begins with, after all
// updates before it and before its own. A question may come early, and waits; or late, since it was
// asked again: then the answer is of no use any more.
type serving struct {
	// lock is locked for reading while rows are copied for others, and for writing while they
	// change.
	lock     sync.RWMutex
	from, to uint64 // the moments that begin with the rows that are here
	ended    bool   // the run ends, and questions wait for the end of those who ask
	mu       sync.Mutex
	waiting  chan struct{} // closed when to grows; nil: no question waits
}

func instant(epoch, step uint32) uint64 { return uint64(epoch)<<32 | uint64(step) }

// Serve answers questions for the rows with which a step begins from now on, or an evaluation, which
// has the step that follows those of its epoch.
func (s *serving) Serve(epoch, step int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.to = instant(uint32(epoch), uint32(step))
	s.from = min(s.from, s.to)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting != nil {
		close(s.waiting)
		s.waiting = nil
	}
}

// enterWithin bounds how long a question waits here, where it takes room that others may need.
const enterWithin = 5 * time.Second

// Enter implements gather.Gate: it waits until the rows of a moment may be read, until Leave. Whoever asks much
// too early is to ask again.
func (s *serving) Enter(ctx context.Context, epoch, step uint32) error {
	at := instant(epoch, step)
	var late <-chan time.Time
	for {
		s.lock.RLock()
		if !s.ended && s.from <= at && at <= s.to {
			return nil
		}
		if !s.ended && at < s.from {
			s.lock.RUnlock()
			return fmt.Errorf("%w: learnt rows have changed since epoch %d, step %d", peer.ErrRefused, epoch, step+1)
		}
		later := s.later()
		s.lock.RUnlock()
		if late == nil {
			timer := time.NewTimer(enterWithin)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-later:
		case <-late:
			return fmt.Errorf("%w: step %d of epoch %d has not begun here", peer.ErrEarly, step+1, epoch)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Leave implements gather.Gate.
func (s *serving) Leave() { s.lock.RUnlock() }

// later returns a channel that is closed when rows of later moments are there.
func (s *serving) later() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = make(chan struct{})
	}
	return s.waiting
}

// change begins an update, during which no rows are read.
func (s *serving) change() { s.lock.Lock() }

// changed ends an update. All nodes have what they asked for before it.
func (s *serving) changed() {
	s.from = s.to + 1
	s.lock.Unlock()
}

// end has all questions wait, since the run ends and rows are no longer those of its steps.
func (s *serving) end() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.ended = true
}
