package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/hashicorp/raft"
)

// Raft panics when it can't read what it is to apply, or can't store its term. The guards stand
// between Raft and the stores of a running node. At the first damage they report that this node
// must stop taking part. If Raft's main goroutine came upon it, they end that goroutine, so that
// it neither acts on anything wrong nor panics; its deferred calls run, and Raft can be shut down
// as usual. Raft's other goroutines, which send entries, handle errors themselves.

// guardedLog guards the log.
type guardedLog struct {
	raft.LogStore
	fail func(error)
}

func (g guardedLog) IsMonotonic() bool {
	m, is := g.LogStore.(raft.MonotonicLogStore)
	return is && m.IsMonotonic()
}

func (g guardedLog) GetLog(index uint64, l *raft.Log) error {
	err := g.LogStore.GetLog(index, l)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, raft.ErrLogNotFound):
	case g.lost(index):
		err = fmt.Errorf("entry %d of the plan's log is gone: %w", index, err)
	default:
		return err
	}
	g.fail(damaged(err))
	if inMainGoroutine() {
		runtime.Goexit()
	}
	return err
}

// lost reports whether the log should have an entry that it did not find. Only Raft's main goroutine
// can tell: it alone drops the end of the log, so that no entry comes and goes while it asks.
func (g guardedLog) lost(index uint64) bool {
	if !inMainGoroutine() {
		return false
	}
	last, err := g.LastIndex()
	if err != nil || index > last {
		return false
	}
	first, err := g.FirstIndex()
	return err == nil && first <= index
}

// inMainGoroutine reports whether Raft's main goroutine calls.
func inMainGoroutine() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); f.Function == "github.com/hashicorp/raft.(*Raft).run" {
			return true
		}
	}
	return false
}

// guardedStable guards term and vote.
type guardedStable struct {
	raft.StableStore
	fail func(error)
}

func (g guardedStable) Set(key, value []byte) error {
	return g.stop(g.StableStore.Set(key, value))
}

func (g guardedStable) SetUint64(key []byte, value uint64) error {
	return g.stop(g.StableStore.SetUint64(key, value))
}

func (g guardedStable) stop(err error) error {
	if err == nil {
		return nil
	}
	g.fail(fmt.Errorf("what this node promises can't be kept: %w", err))
	runtime.Goexit()
	return err
}

// guardedSnapshots guards the snapshots. Raft handles their errors itself.
type guardedSnapshots struct {
	raft.SnapshotStore
	fail func(error)
}

func (g guardedSnapshots) List() ([]*raft.SnapshotMeta, error) {
	list, err := g.SnapshotStore.List()
	if err != nil {
		g.fail(damaged(err))
	}
	return list, err
}

func (g guardedSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, r, err := g.SnapshotStore.Open(id)
	if err != nil {
		g.fail(damaged(err))
	}
	return meta, r, err
}

// damaged words damage that a running node found.
func damaged(err error) error { return fmt.Errorf("the plan's log %w (%w)", ErrDamaged, err) }

// scrubEvery is how often a running node reads its whole log. A plan's log is short.
const scrubEvery = 10 * time.Minute

// scrubber looks for damage that nobody has come upon yet.
type scrubber struct {
	stores   Stores
	repaired func(what string)
	log      *slog.Logger
}

// run returns an error once it finds damage, and nil when ctx ends or stop is closed.
func (s scrubber) run(ctx context.Context, stop <-chan struct{}) error {
	tick := time.NewTicker(scrubEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-stop:
			return nil
		case <-ctx.Done():
			return nil
		}
		if err := s.once(); err != nil {
			return err
		}
	}
}

func (s scrubber) once() error {
	if s.stores.scrub != nil {
		repaired, err := s.stores.scrub()
		if err != nil {
			s.log.Warn("could not look for damage in the plan's log", "err", err)
		}
		if repaired && err == nil {
			s.repaired("the ledger of the plan's log was damaged on disk and was written anew")
		}
	}
	if _, err := s.stores.Snapshots.List(); err != nil {
		return err
	}
	first, err := s.stores.Log.FirstIndex()
	if err != nil {
		return err
	}
	last, err := s.stores.Log.LastIndex()
	if err != nil {
		return err
	}
	for i := max(first, 1); i <= last; i++ {
		var entry raft.Log
		// Raft may have removed it meanwhile.
		if err := s.stores.Log.GetLog(i, &entry); err != nil && !errors.Is(err, raft.ErrLogNotFound) {
			return err
		}
	}
	return nil
}
