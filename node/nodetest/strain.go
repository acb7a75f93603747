package nodetest

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"

	"github.com/hopmesh/hopmesh/consensus"
)

// strain is what is wrong with a node's disk and clock, however often it starts.
type strain struct {
	mu   sync.Mutex
	full bool
	pace time.Duration // of each write to the log
	skew time.Duration // of the clock
}

// Fill makes every write to the node's log, of its term and of its vote fail as on a full disk, or
// ends that.
func (i *Instance) Fill(full bool) { i.strain.set(func(s *strain) { s.full = full }) }

// Drag makes every write to the node's log take so long.
func (i *Instance) Drag(pace time.Duration) { i.strain.set(func(s *strain) { s.pace = pace }) }

// Skew sets the node's clock so far ahead of the right time.
func (i *Instance) Skew(by time.Duration) { i.strain.set(func(s *strain) { s.skew = by }) }

// Relieve ends what Fill, Drag and Skew began.
func (i *Instance) Relieve() {
	i.Fill(false)
	i.Drag(0)
	i.Skew(0)
}

func (s *strain) set(change func(*strain)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *strain) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.skew)
}

func (s *strain) watch(stores consensus.Stores) consensus.Stores {
	stores.Log, stores.Stable = strained{stores.Log, s}, strainedStable{stores.Stable, s}
	return stores
}

// room returns an error while the disk is full.
func (s *strain) room() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full {
		return syscall.ENOSPC
	}
	return nil
}

// strainedStable is a term and a vote on such a disk.
type strainedStable struct {
	raft.StableStore
	strain *strain
}

func (s strainedStable) Set(key, value []byte) error {
	if err := s.strain.room(); err != nil {
		return err
	}
	return s.StableStore.Set(key, value)
}

func (s strainedStable) SetUint64(key []byte, value uint64) error {
	if err := s.strain.room(); err != nil {
		return err
	}
	return s.StableStore.SetUint64(key, value)
}

// strained is a log on such a disk.
type strained struct {
	raft.LogStore
	strain *strain
}

// IsMonotonic says what the log under it says.
func (l strained) IsMonotonic() bool {
	m, ok := l.LogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

func (l strained) StoreLog(e *raft.Log) error { return l.StoreLogs([]*raft.Log{e}) }

func (l strained) StoreLogs(list []*raft.Log) error {
	l.strain.mu.Lock()
	full, pace := l.strain.full, l.strain.pace
	l.strain.mu.Unlock()
	if pace > 0 {
		<-time.After(pace)
	}
	if full {
		return fmt.Errorf("write %d entries: %w", len(list), syscall.ENOSPC)
	}
	return l.LogStore.StoreLogs(list)
}
