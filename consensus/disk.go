package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	wal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
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
	case unwritable(err):
		err = fmt.Errorf("no place for the plan in %s (%w): make room and give this user the right to write there, or name another {agent.data-dir}", dir, err)
	default:
		err = fmt.Errorf("the plan's log in %s %w (%w)", dir, ErrDamaged, err)
	}
	return s, err
}

// unwritable reports whether an error says something about the machine and nothing about
// what the files hold.
func unwritable(err error) bool {
	for _, e := range []error{errUnwritable, fs.ErrPermission, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// openDisk opens the stores and turns a panic into an error: what reads the log does not expect
// all that damage can make of it.
func openDisk(dir string, log *slog.Logger, markEvery time.Duration) (s Stores, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it can't be read: %v", p)
		}
		if err != nil {
			s = Stores{}
		}
	}()
	d := diskDir(dir)
	if err := d.prepare(); err != nil {
		return s, fmt.Errorf("%w: %w", errUnwritable, err)
	}
	hlog := newLogger(log)
	if err := d.upgrade(hlog); err != nil {
		return s, err
	}
	snapshots := &snapshotStore{dir: d.snapshots()}
	notes, err := snapshots.settle()
	if err != nil {
		return s, err
	}
	meta := new(ledger)
	w, err := openSegments(func() (*wal.WAL, error) { return openLog(d.log(), meta, hlog) })
	if err != nil {
		return s, err
	}
	marked, err := newMarkedLog(w, snapshots, meta.reached(), markEvery)
	if err != nil {
		return s, errors.Join(err, w.Close())
	}
	return Stores{Log: sealedLog{marked}, Stable: w, Snapshots: snapshots, Close: marked.Close, Notes: notes, scrub: meta.scrub, verified: true}, nil
}

// diskDir is the directory of the stores.
type diskDir string

func (d diskDir) log() string       { return filepath.Join(string(d), "wal") }
func (d diskDir) snapshots() string { return filepath.Join(string(d), "snapshots") }

// prepare creates the directories, and makes them and what is in them accessible to this user
// only.
func (d diskDir) prepare() error {
	if err := d.finishUpgrade(); err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(d.log(), 0o700), os.MkdirAll(d.snapshots(), 0o700)); err != nil {
		return err
	}
	return filepath.WalkDir(string(d), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o600)
		if e.IsDir() {
			mode = 0o700
		}
		info, err := e.Info()
		if err != nil || info.Mode().Perm()&0o077 == 0 || e.Type()&fs.ModeSymlink != 0 {
			return err
		}
		return os.Chmod(path, mode)
	})
}

func openLog(dir string, meta types.MetaStore, log hclog.Logger) (*wal.WAL, error) {
	files := segment.NewFiler(dir, privateFS{walfs.New()})
	if l, is := meta.(*ledger); is {
		if err := l.turn(dir, files); err != nil {
			return nil, errors.Join(err, meta.Close())
		}
	}
	w, err := wal.Open(dir, wal.WithSegmentSize(segmentSize), wal.WithLogger(log), wal.WithMetaStore(meta),
		wal.WithSegmentFiler(files))
	if err != nil {
		return nil, errors.Join(err, meta.Close())
	}
	return w, nil
}

// privateFS makes the log's files accessible to this user only.
type privateFS struct{ *walfs.FS }

func (p privateFS) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := p.FS.Create(dir, name, size)
	if err != nil {
		// On a full disk there is a file that has no room. The next attempt has its name.
		if !errors.Is(err, fs.ErrExist) {
			_ = os.Remove(filepath.Join(dir, name))
		}
		return nil, err
	}
	if err := os.Chmod(filepath.Join(dir, name), 0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
