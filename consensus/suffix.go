package consensus

import (
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// suffixLog is a log whose last entries are not gone before others are in their place. Raft takes
// away entries that contradict the leader's, and then stores the leader's. If that fails, on a full
// disk, Raft goes on as if the former ones were the last (hashicorp/raft, appendEntries), does not
// find them, and accepts no further entries. So they stay readable, in memory, until an entry is
// stored. They were never committed: nothing depends on them.
type suffixLog struct {
	raft.LogStore

	mu   sync.RWMutex
	gone []raft.Log // ascending, without gaps; no longer in the log below
}

// IsMonotonic says what the log below says.
func (s *suffixLog) IsMonotonic() bool {
	m, is := s.LogStore.(raft.MonotonicLogStore)
	return is && m.IsMonotonic()
}

// LastIndex returns the last index that Raft may ask for.
func (s *suffixLog) LastIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if n := len(s.gone); n > 0 {
		return s.gone[n-1].Index, nil
	}
	return s.LogStore.LastIndex()
}

// GetLog reads an entry, also one that is gone.
func (s *suffixLog) GetLog(index uint64, l *raft.Log) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if n := len(s.gone); n > 0 && index >= s.gone[0].Index && index <= s.gone[n-1].Index {
		*l = s.gone[index-s.gone[0].Index]
		return nil
	}
	return s.LogStore.GetLog(index, l)
}

// StoreLog stores an entry.
func (s *suffixLog) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs stores entries. What is gone is then forgotten, or stored again where these follow it.
func (s *suffixLog) StoreLogs(list []*raft.Log) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.gone) > 0 && len(list) > 0 && list[0].Index > s.gone[0].Index {
		var all []*raft.Log
		for i := range s.gone {
			if s.gone[i].Index < list[0].Index {
				all = append(all, &s.gone[i])
			}
		}
		list = append(all, list...)
	}
	if err := s.LogStore.StoreLogs(list); err != nil {
		return err
	}
	s.gone = nil
	return nil
}

// DeleteRange takes entries away. If they are the last ones, but not all, they are kept in memory.
func (s *suffixLog) DeleteRange(first, last uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	begins, err := s.LogStore.FirstIndex()
	if err != nil {
		return err
	}
	ends, err := s.LogStore.LastIndex()
	if err != nil {
		return err
	}
	if first <= begins || last < ends { // Raft makes the log shorter after a snapshot
		s.gone = slices.DeleteFunc(s.gone, func(l raft.Log) bool { return l.Index <= last })
		return s.LogStore.DeleteRange(first, last)
	}
	if first > ends {
		return nil // they are gone already
	}
	var gone []raft.Log
	for i := first; i <= ends; i++ {
		var l raft.Log
		if err := s.LogStore.GetLog(i, &l); err != nil {
			gone, s.gone = nil, nil // Raft has no use for what is damaged
			break
		}
		gone = append(gone, l)
	}
	if err := s.LogStore.DeleteRange(first, ends); err != nil {
		return err
	}
	s.gone = slices.Concat(gone, s.gone)
	return nil
}
