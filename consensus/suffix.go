package consensus

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// suffixLog is a log whose last entries are not gone before others are in their place. Raft takes
// away entries that contradict the leader's, and then stores the leader's. If that fails, on a full
// disk, Raft goes on as if the former ones were the last (hashicorp/raft, appendEntries), does not
// find them, and accepts no further entries. So they stay readable, in memory, until an entry is
// stored. They were never committed: nothing depends on them.
type suffixLog struct {
	raft.LogStore

	// writing holds what a write needs. Reads wait for none: disks may be slow, and a leader
	// reads for its followers all the time.
	writing chan struct{}
	gone    atomic.Pointer[[]raft.Log] // ascending, without gaps; where they are not gone, the log below has the same
}

func newSuffixLog(below raft.LogStore) *suffixLog {
	s := &suffixLog{LogStore: below, writing: make(chan struct{}, 1)}
	s.gone.Store(new([]raft.Log))
	return s
}

// IsMonotonic says what the log below says.
func (s *suffixLog) IsMonotonic() bool {
	m, is := s.LogStore.(raft.MonotonicLogStore)
	return is && m.IsMonotonic()
}

// LastIndex returns the last index that Raft may ask for.
func (s *suffixLog) LastIndex() (uint64, error) {
	if gone := *s.gone.Load(); len(gone) > 0 {
		return gone[len(gone)-1].Index, nil
	}
	return s.LogStore.LastIndex()
}

// GetLog reads an entry, also one that is gone.
func (s *suffixLog) GetLog(index uint64, l *raft.Log) error {
	gone := *s.gone.Load()
	if n := len(gone); n > 0 && index >= gone[0].Index && index <= gone[n-1].Index {
		*l = gone[index-gone[0].Index]
		return nil
	}
	return s.LogStore.GetLog(index, l)
}

// StoreLog stores an entry.
func (s *suffixLog) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs stores entries. What is gone is then forgotten, or stored again where these follow it.
func (s *suffixLog) StoreLogs(list []*raft.Log) error {
	s.writing <- struct{}{}
	defer func() { <-s.writing }()
	gone := *s.gone.Load()
	if len(gone) > 0 && len(list) > 0 && list[0].Index > gone[0].Index {
		ends, err := s.LogStore.LastIndex()
		if err != nil {
			return err
		}
		var all []*raft.Log
		for i := range gone {
			if gone[i].Index > ends && gone[i].Index < list[0].Index { // they were not taken away, else
				all = append(all, &gone[i])
			}
		}
		list = append(all, list...)
	}
	if err := s.LogStore.StoreLogs(list); err != nil {
		return err
	}
	if len(gone) > 0 {
		s.gone.Store(new([]raft.Log))
	}
	return nil
}

// DeleteRange takes entries away. If they are the last ones, but not all, they are kept in memory.
func (s *suffixLog) DeleteRange(first, last uint64) error {
	s.writing <- struct{}{}
	defer func() { <-s.writing }()
	before := *s.gone.Load()
	begins, err := s.LogStore.FirstIndex()
	if err != nil {
		return err
	}
	ends, err := s.LogStore.LastIndex()
	if err != nil {
		return err
	}
	if first <= begins || last < ends { // Raft makes the log shorter after a snapshot
		left := slices.DeleteFunc(slices.Clone(before), func(l raft.Log) bool { return l.Index <= last })
		s.gone.Store(&left)
		return s.LogStore.DeleteRange(first, last)
	}
	if first > ends {
		return nil // they are gone already
	}
	var gone []raft.Log
	for i := first; i <= ends; i++ {
		var l raft.Log
		if err := s.LogStore.GetLog(i, &l); err != nil {
			gone, before = nil, nil // Raft has no use for what is damaged
			break
		}
		gone = append(gone, l)
	}
	// First, so that they can be read at any moment. If it fails, they may be gone or not, as
	// those before may.
	gone = joined(before, gone)
	s.gone.Store(&gone)
	return s.LogStore.DeleteRange(first, ends)
}

// joined returns the entries of two lists, each once, by their index. Those of the second are
// taken where both have one.
func joined(a, b []raft.Log) []raft.Log {
	all := slices.Concat(b, a)
	slices.SortStableFunc(all, func(x, y raft.Log) int { return cmp.Compare(x.Index, y.Index) })
	return slices.CompactFunc(all, func(x, y raft.Log) bool { return x.Index == y.Index })
}
