package peers

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// Session is the peer.Peers of one job in one generation of the plan.
type Session struct {
	registry   *Registry
	key        jobKey
	generation uint64
	ids, names []string
	self       int
	places     map[string]int // by id

	contact contact

	// handlers do not change once open is true. The registry's mu guards open.
	handlers [services]peer.Handler
	open     bool
	running  sync.WaitGroup // questions being answered

	life context.Context // ends in Close
	end  context.CancelCauseFunc
}

var _ peer.Peers = (*Session)(nil)

func newSession(r *Registry, key jobKey, generation uint64, ids, names []string, self int) *Session {
	s := &Session{
		registry: r, key: key, generation: generation, ids: slices.Clone(ids), names: slices.Clone(names), self: self,
		places: map[string]int{}, contact: contact{begun: time.Now(), heard: make([]atomic.Int64, len(ids)), lost: make([]atomic.Int64, len(ids))},
	}
	for i, id := range ids {
		s.places[id] = i
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	return s
}

// Answer implements peer.Peers.
func (s *Session) Answer(to peer.Service, h peer.Handler) { s.handlers[to] = h }

// Open implements peer.Peers.
func (s *Session) Open() {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	s.open = true
	s.registry.wake()
}

// Close stops accepting questions, cancels the contexts of those being answered with
// cause, and waits for them. Questions that this node asks end with their own contexts.
func (s *Session) Close(cause error) {
	r := s.registry
	r.mu.Lock()
	if j := r.jobs[s.key]; j != nil && j.session == s {
		j.session = nil
	}
	s.end(cause)
	r.wake()
	r.mu.Unlock()
	s.running.Wait()
}
