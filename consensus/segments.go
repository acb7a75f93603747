package consensus

import (
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
)

// segments is the log on disk. Where the library can't begin a segment, on a full disk, what it has
// in memory differs from its files from then on: a segment that is full stays the last one, and
// entries that follow a cut go where no restart looks for them. So the log is opened anew. After
// a write that failed it is not: the library overwrites that, and files would still show it.
type segments struct {
	open func() (*wal.WAL, error)

	change sync.Mutex // held by whoever changes the log
	doubt  bool       // a cut failed, and the log has not been opened anew since
	closed bool

	mu  sync.RWMutex // held while now is used, and to replace it
	now *wal.WAL
}

func openSegments(open func() (*wal.WAL, error)) (*segments, error) {
	w, err := open()
	return &segments{open: open, now: w}, err
}

// renew opens the log anew. The one before stays if that fails. It is called with change held.
func (s *segments) renew() error {
	s.doubt = true
	w, err := s.open()
	if err != nil {
		return fmt.Errorf("open the plan's log anew: %w", err)
	}
	s.mu.Lock()
	old := s.now
	s.now = w
	s.mu.Unlock()
	s.doubt = false
	return old.Close()
}

// sure opens the log anew if that is due. It is called with change held.
func (s *segments) sure() error {
	switch {
	case s.closed:
		return wal.ErrClosed
	case s.doubt:
		return s.renew()
	}
	return nil
}

// StoreLogs stores entries.
func (s *segments) StoreLogs(list []*raft.Log) error {
	s.change.Lock()
	defer s.change.Unlock()
	if err := s.sure(); err != nil {
		return err
	}
	err := s.now.StoreLogs(list)
	if errors.Is(err, wal.ErrSealed) { // it could not begin the next segment, and did not say so
		if err := s.renew(); err != nil {
			return err
		}
		err = s.now.StoreLogs(list)
	}
	return err
}

// StoreLog stores an entry.
func (s *segments) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// DeleteRange takes entries away.
func (s *segments) DeleteRange(first, last uint64) error {
	s.change.Lock()
	defer s.change.Unlock()
	if err := s.sure(); err != nil {
		return err
	}
	err := s.now.DeleteRange(first, last)
	if err != nil {
		err = errors.Join(err, s.renew())
	}
	return err
}

// Set stores a value.
func (s *segments) Set(key, value []byte) error {
	s.change.Lock()
	defer s.change.Unlock()
	return s.now.Set(key, value)
}

// SetUint64 stores a number.
func (s *segments) SetUint64(key []byte, n uint64) error {
	s.change.Lock()
	defer s.change.Unlock()
	return s.now.SetUint64(key, n)
}

// Close may be called again.
func (s *segments) Close() error {
	s.change.Lock()
	defer s.change.Unlock()
	s.closed = true
	return s.now.Close()
}

func reading[T any](s *segments, do func(*wal.WAL) (T, error)) (T, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return do(s.now)
}

// FirstIndex returns the index of the first entry, or 0.
func (s *segments) FirstIndex() (uint64, error) { return reading(s, (*wal.WAL).FirstIndex) }

// LastIndex returns the index of the last entry, or 0.
func (s *segments) LastIndex() (uint64, error) { return reading(s, (*wal.WAL).LastIndex) }

// GetLog reads an entry.
func (s *segments) GetLog(index uint64, l *raft.Log) error {
	_, err := reading(s, func(w *wal.WAL) (struct{}, error) { return struct{}{}, w.GetLog(index, l) })
	return err
}

// Get returns a value, or nil.
func (s *segments) Get(key []byte) ([]byte, error) {
	return reading(s, func(w *wal.WAL) ([]byte, error) { return w.Get(key) })
}

// GetUint64 returns a number, or 0.
func (s *segments) GetUint64(key []byte) (uint64, error) {
	return reading(s, func(w *wal.WAL) (uint64, error) { return w.GetUint64(key) })
}

// IsMonotonic reports that entries come without gaps.
func (s *segments) IsMonotonic() bool { return true }
