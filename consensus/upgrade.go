package consensus

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/metadb"
)

// The version before kept a log without checksums, whose segments and votes were in a database,
// and snapshots in a folder each. Such a directory is accepted once, as far as it can be read,
// and written anew with checksums. The new log is whole before it takes the old one's place.

func (d diskDir) newLog() string { return filepath.Join(string(d), "wal.new") }
func (d diskDir) oldLog() string { return filepath.Join(string(d), "wal.old") }

// finishUpgrade completes what a crash may have interrupted.
func (d diskDir) finishUpgrade() error {
	_, err := os.Stat(d.log())
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(d.newLog(), d.log()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(os.RemoveAll(d.newLog()), os.RemoveAll(d.oldLog()))
}

// isOld reports whether the version before wrote the log.
func (d diskDir) isOld() (bool, error) {
	if _, err := os.Stat(filepath.Join(d.log(), ledgerName)); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	f, err := os.Open(filepath.Join(d.log(), metadb.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, len(guardText))
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	// A database begins with zeros: the number of its first page.
	return n >= 8 && string(head[:8]) == "\x00\x00\x00\x00\x00\x00\x00\x00", nil
}

func (d diskDir) upgrade(log hclog.Logger) error {
	old, err := d.isOld()
	if err != nil {
		return err
	}
	if !old {
		return d.dropOldSnapshots() // a crash may have left them
	}
	was, err := raft.NewFileSnapshotStoreWithLogger(string(d), keepSnapshots, log)
	if err != nil {
		return err
	}
	if err := dropUnfinished(d.snapshots()); err != nil {
		return err
	}
	if err := d.copyLog(was, log); err != nil {
		return err
	}
	if err := d.copySnapshots(was); err != nil {
		return err
	}
	if err := errors.Join(os.Rename(d.log(), d.oldLog()), os.Rename(d.newLog(), d.log()), syncDir(string(d)), os.RemoveAll(d.oldLog())); err != nil {
		return err
	}
	return d.dropOldSnapshots()
}

// copyLog reads the old log as the version before did, and writes the new one.
func (d diskDir) copyLog(snapshots raft.SnapshotStore, log hclog.Logger) (err error) {
	meta := new(metadb.BoltMetaDB)
	from, err := openLog(d.log(), meta, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	mark, err := from.GetUint64(markKey)
	if err != nil {
		return err
	}
	found, err := verify(from, snapshots, mark)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.newLog(), 0o700); err != nil {
		return err
	}
	to, err := openLog(d.newLog(), new(ledger), log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	for i := max(found.first, 1); i <= found.last; i++ {
		var entry raft.Log
		if err := from.GetLog(i, &entry); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		if err := (sealedLog{to}).StoreLog(&entry); err != nil {
			return err
		}
	}
	for _, key := range [][]byte{[]byte("CurrentTerm"), []byte("LastVoteTerm"), []byte("LastVoteCand"), markKey} {
		value, err := from.Get(key)
		if err != nil {
			return err
		}
		if value == nil {
			continue
		}
		if err := to.Set(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (d diskDir) copySnapshots(from raft.SnapshotStore) error {
	list, err := from.List()
	if err != nil {
		return err
	}
	to := &snapshotStore{dir: d.snapshots()}
	for _, meta := range list {
		_, r, err := from.Open(meta.ID)
		if err != nil {
			continue // verify has found the log to reach back to one that can be read
		}
		body, err := io.ReadAll(io.LimitReader(r, maxSnapshotFile))
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
		meta.Peers, meta.Size = nil, int64(len(body))
		if err := to.keep(*meta, body); err != nil {
			return err
		}
	}
	return nil
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

func (d diskDir) dropOldSnapshots() error {
	list, err := os.ReadDir(d.snapshots())
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.IsDir() {
			if err := os.RemoveAll(filepath.Join(d.snapshots(), e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
