package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

const (
	// segmentSize is the size of the log's files, which are allocated in full. A plan's
	// log rarely fills one.
	segmentSize = 4 << 20
	// keepSnapshots is one more than needed, in case the newest is unreadable.
	keepSnapshots = 2
)

var errUnwritable = errors.New("the plan can't be kept")

// DiskStores opens the stores under dir, creating them if necessary. It reads
// everything once so that damage is found now; the error is then ErrDamaged, worded for
// the user. Only one process may have dir open.
func DiskStores(dir string, log *slog.Logger) (Stores, error) {
	s, err := openDisk(dir, log, time.Second)
	switch {
	case err == nil, errors.Is(err, plan.ErrUnknownCommand):
	case errors.Is(err, errUnwritable), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		err = fmt.Errorf("no place for the plan in %s (%w): make room and give this user the right to write there, or name another {agent.data-dir}", dir, err)
	default:
		err = fmt.Errorf("the plan's log in %s %w (%w): this node may have promised what it has lost, so move its whole data directory away, run {force-leave} for it on another node, and join anew with a fresh token",
			dir, ErrDamaged, err)
	}
	return s, err
}

// openDisk opens the stores and turns a panic into an error: the log's index is a
// memory-mapped file, and reading a truncated one faults.
func openDisk(dir string, log *slog.Logger, markEvery time.Duration) (s Stores, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	meta := new(metadb.BoltMetaDB)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it can't be read: %v", p)
		}
		if err != nil {
			s = Stores{}
		}
	}()
	files := filepath.Join(dir, "wal")
	hlog := newLogger(log)
	snapshots, err := prepare(dir, files, hlog)
	if err != nil {
		return s, err
	}
	w, err := wal.Open(files, wal.WithSegmentSize(segmentSize), wal.WithLogger(hlog), wal.WithMetaStore(meta))
	if err != nil {
		return s, errors.Join(err, meta.Close())
	}
	marked, err := newMarkedLog(w, snapshots, markEvery)
	if err != nil {
		return s, errors.Join(err, w.Close())
	}
	return Stores{Log: marked, Stable: w, Snapshots: snapshots, Close: marked.Close}, nil
}

// prepare creates the directories, accessible to this user only.
func prepare(dir, files string, log hclog.Logger) (raft.SnapshotStore, error) {
	snapshots := filepath.Join(dir, "snapshots") // Raft's name for it
	err := errors.Join(os.MkdirAll(files, 0o700), os.MkdirAll(snapshots, 0o700))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnwritable, err)
	}
	store, err := raft.NewFileSnapshotStoreWithLogger(dir, keepSnapshots, log)
	if err == nil {
		err = dropUnfinished(snapshots)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnwritable, err)
	}
	return store, nil
}

// dropUnfinished removes partly written snapshots left by a crash.
func dropUnfinished(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name(), ".tmp") {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
