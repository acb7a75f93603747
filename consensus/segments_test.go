package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
)

// obstacles lie where the log's next segments would.
func obstacles(t *testing.T, dir string, id int) (remove func()) {
	t.Helper()
	var all []string
	for base := range 64 {
		path := filepath.Join(dir, "wal", fmt.Sprintf("%020d-%016x.wal", base, id))
		if err := os.Mkdir(path, 0o700); err == nil {
			all = append(all, path)
		} else if !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	return func() {
		for _, path := range all {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// afterRestart closes stores and opens those of a directory.
func afterRestart(t *testing.T, s Stores, dir string) Stores {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := openDisk(dir, discard(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func large(first, last uint64) (list []*raft.Log) {
	for i := first; i <= last; i++ {
		list = append(list, &raft.Log{Index: i, Term: 1, Data: bytes.Repeat([]byte{byte(i)}, 1<<20)})
	}
	return list
}

func wantLarge(t *testing.T, log raft.LogStore, last uint64) {
	t.Helper()
	if n, err := log.LastIndex(); err != nil || n != last {
		t.Errorf("the last is %d and should be %d, %v", n, last, err)
	}
	for i := uint64(1); i <= last; i++ {
		var l raft.Log
		if err := log.GetLog(i, &l); err != nil || l.Index != i || len(l.Data) != 1<<20 || l.Data[5] != byte(i) {
			t.Errorf("entry %d: %d bytes, %v", i, len(l.Data), err)
		}
	}
}

// A log that found no room for its next segment takes entries when there is room, without a
// restart, and has all of them after one.
func TestTheNextSegmentFindsNoRoom(t *testing.T) {
	dir := t.TempDir()
	s, err := openDisk(dir, discard(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	remove := obstacles(t, dir, 1)
	kept, failed := uint64(0), 0
	for failed < 3 {
		if err := s.Log.StoreLogs(large(kept+1, kept+1)); err != nil {
			failed++
		} else if kept++; kept > 20 {
			t.Fatal("it never needed a second segment")
		}
		wantLarge(t, s.Log, kept)
	}
	remove()
	for range 3 {
		kept++
		if err := s.Log.StoreLogs(large(kept, kept)); err != nil {
			t.Fatalf("there is room, and entry %d finds none: %v", kept, err)
		}
	}
	wantLarge(t, s.Log, kept)
	if err := s.Stable.Set([]byte("CurrentTerm"), []byte("seven")); err != nil {
		t.Error(err)
	}
	s = afterRestart(t, s, dir)
	wantLarge(t, s.Log, kept)
	if b, err := s.Stable.Get([]byte("CurrentTerm")); err != nil || string(b) != "seven" {
		t.Errorf("%q, %v", b, err)
	}
}

// It is the same where the ledger, which lists the segments, finds no room, and where the node is
// killed before the next segment has begun.
func TestTheLedgerFindsNoRoom(t *testing.T) {
	dir := t.TempDir()
	s, err := openDisk(dir, discard(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	obstacle := filepath.Join(dir, "wal", ledgerName+".tmp")
	if err := os.Mkdir(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	kept := uint64(0)
	for failed := 0; failed < 3; {
		if err := s.Log.StoreLogs(large(kept+1, kept+1)); err != nil {
			failed++
		} else if kept++; kept > 20 {
			t.Fatal("it never needed a second segment")
		}
	}
	wantLarge(t, s.Log, kept)
	killed := t.TempDir()
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{dir, killed} {
		if err := os.Remove(filepath.Join(at, "wal", ledgerName+".tmp")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Log.StoreLogs(large(kept+1, kept+2)); err != nil {
		t.Errorf("there is room, and an entry finds none: %v", err)
	}
	wantLarge(t, s.Log, kept+2)
	after, err := openDisk(killed, discard(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := after.Log.StoreLogs(large(kept+1, kept+1)); err != nil {
		t.Errorf("a node that was killed takes no entry: %v", err)
	}
	wantLarge(t, after.Log, kept+1)
	if err := after.Close(); err != nil {
		t.Fatal(err)
	}
	if err := after.Log.StoreLogs(large(kept+2, kept+2)); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("stored after it was closed: %v", err)
	}
}

// Entries that are stored count, though the ledger has no room for the mark of how many there are. The
// mark follows once there is.
func TestTheMarkFindsNoRoom(t *testing.T) {
	dir := t.TempDir()
	s, err := openDisk(dir, discard(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	obstacle := filepath.Join(dir, "wal", ledgerName+".tmp")
	if err := os.Mkdir(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(2) {
		if err := s.Log.StoreLogs(large(i+1, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	if err := s.Log.StoreLogs(large(3, 3)); err != nil {
		t.Fatal(err)
	}
	wantLarge(t, s.Log, 3)
	killed := t.TempDir()
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	after, err := openDisk(killed, discard(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = after.Close() }()
	if mark, err := after.Stable.GetUint64(markKey); err != nil || mark != 3 {
		t.Errorf("the mark is %d, %v", mark, err)
	}
}

// A node that stops on a full disk stops well, with the mark of before, and starts on one.
func TestTheLastMarkFindsNoRoom(t *testing.T) {
	const full = "/dev/full" // takes nothing
	dir := t.TempDir()
	s, err := openDisk(dir, discard(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(2) {
		if err := s.Log.StoreLogs(large(i+1, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(full, filepath.Join(dir, "wal", ledgerName+".tmp")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, room := range []bool{false, true} {
		if !room {
			if err := os.Symlink(full, filepath.Join(dir, "wal", ledgerName+".tmp")); err != nil {
				t.Fatal(err)
			}
		}
		if s, err = openDisk(dir, discard(), time.Hour); err != nil {
			t.Fatal(err)
		}
		wantLarge(t, s.Log, 2)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Where the end of the log can't be cut off since no segment can begin behind it, entries that
// come next are there after a restart.
func TestACutFindsNoRoom(t *testing.T) {
	dir := t.TempDir()
	s, err := openDisk(dir, discard(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	log := newSuffixLog(s.Log)
	if err := log.StoreLogs(large(1, 3)); err != nil {
		t.Fatal(err)
	}
	remove := obstacles(t, dir, 1)
	for range 2 {
		if err := log.DeleteRange(3, 3); err == nil {
			t.Error("it was cut though no segment can begin")
		}
		wantLarge(t, log, 3)
		if err := log.StoreLogs(large(3, 4)); err == nil {
			t.Error("an entry found room")
		}
		wantLarge(t, log, 3)
	}
	remove()
	if err := log.DeleteRange(3, 3); err != nil {
		t.Fatal(err)
	}
	wantLarge(t, log, 3)
	if err := log.StoreLogs(large(3, 5)); err != nil {
		t.Fatal(err)
	}
	wantLarge(t, log, 5)
	s = afterRestart(t, s, dir)
	wantLarge(t, s.Log, 5)
}

// What is stored after a cut that failed is there after a restart, too: the files say that the log
// was cut, and memory that it was not.
func TestWhatFollowsAFailedCutIsKept(t *testing.T) {
	dir := t.TempDir()
	s, err := openDisk(dir, discard(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	log := newSuffixLog(s.Log)
	if err := log.StoreLogs(large(1, 3)); err != nil {
		t.Fatal(err)
	}
	remove := obstacles(t, dir, 1)
	if err := log.DeleteRange(3, 3); err == nil {
		t.Error("it was cut though no segment can begin")
	}
	remove()
	if err := log.StoreLogs(large(4, 4)); err != nil { // Raft tries again
		if err := log.StoreLogs(large(4, 4)); err != nil {
			t.Fatal(err)
		}
	}
	wantLarge(t, log, 4)
	s = afterRestart(t, s, dir)
	wantLarge(t, s.Log, 4)
}
