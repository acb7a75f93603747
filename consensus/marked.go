package consensus

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
)

// markedLog is a log that detects the loss of its tail. The log itself cannot
// distinguish a truncated tail from one never written, and a voter that forgets
// acknowledged entries breaks Raft's safety. So the highest index is stored beside the
// votes: at open and close, and once a second while the log grows. Storing it with each
// entry would double an entry's cost.
type markedLog struct {
	*segments
	every time.Duration

	mu    sync.Mutex
	mark  uint64 // as stored
	wrote time.Time
}

var (
	_ raft.LogStore          = (*markedLog)(nil)
	_ raft.MonotonicLogStore = (*markedLog)(nil)
)

var markKey = []byte("hopmesh-last-index")

// newMarkedLog verifies a log. held is an entry that it is known to have held, besides those noted,
// or 0.
func newMarkedLog(w *segments, snapshots raft.SnapshotStore, held uint64, every time.Duration) (*markedLog, error) {
	mark, err := w.GetUint64(markKey)
	if err != nil {
		return nil, err
	}
	found, err := verify(sealedLog{w}, snapshots, mark)
	if err != nil {
		return nil, err
	}
	if found.last < held {
		return nil, fmt.Errorf("it ends with entry %d, but held entry %d", found.last, held)
	}
	l := &markedLog{segments: w, every: every, mark: mark}
	if found.last > 0 && found.last < found.snapshot {
		// A crash came between the arrival of a snapshot and the removal of the entries
		// that it replaces. Raft would now append after the snapshot, and the log would
		// refuse the gap for ever.
		if err := l.DeleteRange(found.first, found.last); err != nil {
			return nil, err
		}
	}
	if err := l.note(max(found.last, found.snapshot)); !unwritable(err) {
		return l, err
	}
	return l, nil // the mark of before holds
}

// extent is the range of entries that exist: first and last are 0 if the log is empty,
// snapshot is the last index covered by the newest readable snapshot.
type extent struct{ first, last, snapshot uint64 }

// verify reads every entry and snapshot, and returns an error if any is damaged or the
// log ends before mark. A snapshot makes up for that only if the log is empty: Raft never
// leaves a part of the log that it drops.
func verify(log raft.LogStore, snapshots raft.SnapshotStore, mark uint64) (found extent, err error) {
	meta, _, err := newestSnapshot(snapshots)
	if err != nil {
		return found, err
	}
	if meta != nil {
		found.snapshot = meta.Index
	}
	if found.first, err = log.FirstIndex(); err != nil {
		return found, err
	}
	if found.last, err = log.LastIndex(); err != nil {
		return found, err
	}
	if found.first > found.snapshot+1 {
		return found, fmt.Errorf("it begins with entry %d, but the newest readable snapshot ends with %d", found.first, found.snapshot)
	}
	if found.first > found.last {
		return found, fmt.Errorf("it begins with entry %d, but ends with %d", found.first, found.last)
	}
	end := found.last
	if end == 0 {
		end = found.snapshot
	}
	if end < mark {
		return found, fmt.Errorf("it ends with entry %d, but held %d entries at least", end, mark)
	}
	var term uint64
	for i := max(found.first, 1); i <= found.last; i++ {
		var entry raft.Log
		if err := log.GetLog(i, &entry); err != nil {
			return found, err
		}
		if entry.Index != i {
			return found, fmt.Errorf("entry %d calls itself %d", i, entry.Index)
		}
		if entry.Term < term {
			return found, fmt.Errorf("entry %d is of term %d, and the one before of %d", i, entry.Term, term)
		}
		term = entry.Term
		if entry.Type == raft.LogConfiguration {
			raft.DecodeConfiguration(entry.Data) // panics if it is malformed, see openDisk
		}
	}
	return found, nil
}

func (l *markedLog) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

func (l *markedLog) StoreLogs(logs []*raft.Log) error {
	if err := l.segments.StoreLogs(logs); err != nil || len(logs) == 0 {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.wrote) >= l.every {
		// The entries are stored. If Raft heard otherwise it would send them again, and the log
		// takes none twice. The mark follows with later ones.
		_ = l.note(logs[len(logs)-1].Index)
	}
	return nil
}

// DeleteRange lowers the mark first if the tail of the log is deleted.
func (l *markedLog) DeleteRange(from, to uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, err := l.LastIndex()
	if err != nil {
		return err
	}
	if to >= last && from > 0 && l.mark >= from {
		if err := l.note(from - 1); err != nil {
			return err
		}
	}
	return l.segments.DeleteRange(from, to)
}

// note stores the mark. It is called with mu held, or before the log is shared.
func (l *markedLog) note(last uint64) error {
	l.wrote = time.Now()
	if last == l.mark {
		return nil
	}
	if err := l.SetUint64(markKey, last); err != nil {
		return fmt.Errorf("note the end of the plan's log: %w", err)
	}
	l.mark = last
	return nil
}

// Close may be called again.
func (l *markedLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, err := l.LastIndex()
	if errors.Is(err, wal.ErrClosed) {
		return nil
	}
	if err == nil && last > l.mark {
		if err = l.note(last); unwritable(err) {
			err = nil // the mark of before holds, and no entry is lost
		}
	}
	return errors.Join(err, l.segments.Close())
}
