package peers

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A Session is the peers of one job, in one generation of the plan.
type Session struct {
	registry   *Registry
	key        jobKey
	generation uint64
	ids, names []string
	self       int
	places     map[string]int // by id

	begun time.Time
	heard []atomic.Int64 // of each node: how long after begun it last answered
	lost  []atomic.Int64 // of each node: how long after begun it could last not be reached

	mu    sync.Mutex
	asked []*stamp // questions without an answer

	// handlers do not change once open, which the registry's mu guards, is true.
	handlers [services]strategy.Handler
	open     bool
	running  sync.WaitGroup // questions that are being answered

	life context.Context // ends with Close
	end  context.CancelCauseFunc
}

var _ strategy.Peers = (*Session)(nil)

func newSession(r *Registry, key jobKey, generation uint64, ids, names []string, self int) *Session {
	s := &Session{
		registry: r, key: key, generation: generation, ids: slices.Clone(ids), names: slices.Clone(names), self: self,
		places: map[string]int{}, begun: time.Now(), heard: make([]atomic.Int64, len(ids)), lost: make([]atomic.Int64, len(ids)),
	}
	for i, id := range ids {
		s.places[id] = i
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	return s
}

// Answer implements strategy.Peers.
func (s *Session) Answer(to strategy.Service, h strategy.Handler) { s.handlers[to] = h }

// Open implements strategy.Peers.
func (s *Session) Open() {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	s.open = true
	s.registry.tell()
}

// Close lets no question in any more, ends the contexts of those that are being
// answered, for this cause, and waits until they are. What this node itself asks ends
// with the contexts that it asks with.
func (s *Session) Close(cause error) {
	r := s.registry
	r.mu.Lock()
	if j := r.jobs[s.key]; j != nil && j.session == s {
		j.session = nil
	}
	s.end(cause)
	r.tell()
	r.mu.Unlock()
	s.running.Wait()
}
