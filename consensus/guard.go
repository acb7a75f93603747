package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Raft panics when it can't read what it is to apply, or can't store its term. The guards stand
// between Raft and the stores of a running node. At the first damage they report that this node
// must stop taking part. If Raft's main goroutine came upon it, they end that goroutine, so that
// it neither acts on anything wrong nor panics; its deferred calls run, and Raft can be shut down
// as usual. Raft's other goroutines, which send entries, handle errors themselves.
//
// What the machine lacks, such as open files or memory, is no damage: see unwritable. It is logged
// and tried again. If nothing can be read for long and Raft can't go on, the node ends, and its log
// stays as it is. Without room for its term or its vote, a node takes no part in Raft until there is
// some: it promises nothing, and the others go on without it.

// guard is what all guards need.
type guard struct {
	fail func(error)
	log  *slog.Logger
	// started is set once Raft runs. Until then it has no goroutines of its own.
	started *atomic.Bool
	lack    *atomic.Pointer[error] // why Raft waits; nil: it does not
	ended   <-chan struct{}        // closed when Raft is to end
}

const (
	shortagePatience = 5 * time.Second
	shortagePause    = 100 * time.Millisecond
)

// patiently reads, and again for a while if the machine lacks something.
func (g guard) patiently(read func() error) error {
	begin := time.Now()
	for warned := false; ; warned = true {
		err := read()
		if err == nil || !unwritable(err) || time.Since(begin) >= shortagePatience {
			return err
		}
		if !warned {
			g.log.Warn("the plan's log can't be read now; it is tried again", "err", err)
		}
		time.Sleep(shortagePause)
	}
}

// report reports why something can't be read. If others than Raft's main goroutine come upon what
// the machine lacks, they try again by themselves.
func (g guard) report(err error) {
	if !unwritable(err) || !g.started.Load() || inMainGoroutine() {
		g.fail(damaged(err))
	}
}

// guardedLog guards the log.
type guardedLog struct {
	raft.LogStore
	guard
}

func (g guardedLog) IsMonotonic() bool {
	m, is := g.LogStore.(raft.MonotonicLogStore)
	return is && m.IsMonotonic()
}

func (g guardedLog) GetLog(index uint64, l *raft.Log) error {
	err := g.patiently(func() error { return g.LogStore.GetLog(index, l) })
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, raft.ErrLogNotFound):
	case g.lost(index):
		err = fmt.Errorf("entry %d of the plan's log is gone: %w", index, err)
	default:
		return err
	}
	g.report(err)
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
	guard

	term uint64 // of the vote that is being stored
}

// The halves of a vote, in the order in which Raft stores them. A node that ended between them would
// have voted for the candidate of its vote before, and grant that one a vote however old its log is.
// So they are stored in the opposite order: then it has not voted in this term.
const (
	voteTerm      = "LastVoteTerm"
	voteCandidate = "LastVoteCand"
)

func (g *guardedStable) Set(key, value []byte) error {
	if err := g.keep(func() error { return g.StableStore.Set(key, value) }); err != nil || string(key) != voteCandidate {
		return err
	}
	return g.keep(func() error { return g.StableStore.SetUint64([]byte(voteTerm), g.term) })
}

func (g *guardedStable) SetUint64(key []byte, value uint64) error {
	if string(key) == voteTerm { // Raft's main goroutine alone votes
		g.term = value
		return nil
	}
	return g.keep(func() error {
		err := g.StableStore.SetUint64(key, value)
		if unwritable(err) {
			// Raft stores its term anew as it starts. What stands there needs no room.
			if has, not := g.GetUint64(key); not == nil && has == value {
				return nil
			}
		}
		return err
	})
}

// keep returns once the node may act on what it stores. Only Raft's main goroutine waits: those that
// answer heartbeats end, and so do their streams. They would be more with each heartbeat, and one of
// those that wait would store an old term after another has stored a newer one. The main goroutine soon
// lacks the same.
func (g *guardedStable) keep(store func() error) error {
	if g.started.Load() && g.lack.Load() != nil && !inMainGoroutine() {
		runtime.Goexit()
	}
	for waits := false; ; waits = true {
		err := store()
		if err == nil {
			if waits {
				g.lack.Store(nil)
				g.log.Info("there is room for the plan's log again")
			}
			return nil
		}
		if !unwritable(err) || !g.started.Load() && !inMainGoroutine() {
			g.fail(fmt.Errorf("what this node promises can't be kept: %w", err))
			runtime.Goexit()
		}
		if !inMainGoroutine() {
			runtime.Goexit()
		}
		if g.lack.Store(&err); !waits {
			g.log.Warn("this node takes no part in decisions until it can write to the plan's log", "err", err)
		}
		select {
		case <-time.After(shortagePause):
		case <-g.ended:
			runtime.Goexit()
		}
	}
}

// guardedSnapshots guards the snapshots. Raft handles their errors itself.
type guardedSnapshots struct {
	raft.SnapshotStore
	guard
}

func (g guardedSnapshots) List() (list []*raft.SnapshotMeta, err error) {
	err = g.patiently(func() (err error) {
		list, err = g.SnapshotStore.List()
		return err
	})
	if err != nil {
		g.report(err)
	}
	return list, err
}

func (g guardedSnapshots) Open(id string) (meta *raft.SnapshotMeta, r io.ReadCloser, err error) {
	err = g.patiently(func() (err error) {
		meta, r, err = g.SnapshotStore.Open(id)
		return err
	})
	if err != nil {
		g.report(err)
	}
	return meta, r, err
}

// damaged words what a node found that could not read its log: damage, or what the machine lacks.
func damaged(err error) error {
	if unwritable(err) {
		return fmt.Errorf("the plan's log can't be read, though nothing says that it is damaged: %w; see to what this machine lacks and start the agent again", err)
	}
	return fmt.Errorf("the plan's log %w (%w)", ErrDamaged, err)
}

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
		switch err := s.once(); {
		case err == nil:
		case unwritable(err):
			s.log.Warn("could not look for damage in the plan's log", "err", err)
		default:
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
