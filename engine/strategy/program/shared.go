package program

import (
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/engine/desk"
)

// shared are the memories of a run. It may be used from any goroutine.
type shared struct {
	desk *desk.Desk
	mu   sync.Mutex
	all  []*desk.Memory
}

func (s *shared) take(bytes uint64) (*desk.Memory, error) {
	m, err := s.desk.Memory(bytes)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, m)
	return m, nil
}

// drop gives a memory back, unless it is nil.
func (s *shared) drop(m *desk.Memory) {
	if m == nil {
		return
	}
	s.mu.Lock()
	s.all = slices.DeleteFunc(s.all, func(o *desk.Memory) bool { return o == m })
	s.mu.Unlock()
	m.Close()
}

// close gives all back. Nobody may use them any more.
func (s *shared) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.all {
		m.Close()
	}
	s.all = nil
}
