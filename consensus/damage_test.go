package consensus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

// lived is a directory with everything that a node writes: sealed segments and an open one, a
// term and a vote, two snapshots.
func lived(t *testing.T) string {
	t.Helper()
	dir := history(t, func(s Stores) {
		entries(t, s, 1, 40)
		promise(t, s.Stable)
		snapshotAt(t, s, 20)
		if err := s.Log.DeleteRange(31, 40); err != nil { // a conflict seals the segment
			t.Fatal(err)
		}
		entries(t, s, 31, 60)
		snapshotAt(t, s, 45)
	})
	// Segments are mostly zeros. Fewer of them do for a test.
	files, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil {
			err = os.Truncate(f, int64(used(b)+16<<10))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func promise(t *testing.T, s raft.StableStore) {
	t.Helper()
	err := errors.Join(s.SetUint64([]byte("CurrentTerm"), 7), s.SetUint64([]byte("LastVoteTerm"), 7), s.Set([]byte("LastVoteCand"), []byte("b")))
	if err != nil {
		t.Fatal(err)
	}
}

// contents is all that a node would act on.
func contents(t *testing.T, s Stores) string {
	t.Helper()
	var b strings.Builder
	for _, key := range []string{"CurrentTerm", "LastVoteTerm"} {
		v, err := s.Stable.GetUint64([]byte(key))
		fmt.Fprintln(&b, key, v, err)
	}
	vote, err := s.Stable.Get([]byte("LastVoteCand"))
	fmt.Fprintln(&b, string(vote), err)
	last, err := s.Log.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	meta, state, err := newestSnapshot(s.Snapshots)
	if err != nil {
		t.Fatal(err)
	}
	// What Raft replays begins after the newest snapshot; what an older one needs is replayed
	// to the same plan.
	fmt.Fprintln(&b, meta.Configuration, state.MeshID, last)
	for i := uint64(46); i <= last; i++ {
		var l raft.Log
		if err := s.Log.GetLog(i, &l); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, l.Index, l.Term, l.Type, len(l.Data), bytes.Count(l.Data, []byte("x")))
	}
	return b.String()
}

// kinds are the files of a directory by what they are.
func kinds(t *testing.T, dir string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		kind := ""
		switch name := d.Name(); {
		case strings.HasSuffix(name, ".wal"):
			kind = "log segment"
		case strings.HasSuffix(name, snapshotSuffix):
			kind = "snapshot"
		case name == ledgerName:
			kind = "ledger"
		case name == metadb.FileName:
			kind = "guard"
		default:
			t.Errorf("a file of no kind: %s", path)
		}
		rel, err := filepath.Rel(dir, path)
		all[kind] = append(all[kind], rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// used returns how much of a file is not the zeros at its end.
func used(b []byte) int { return len(bytes.TrimRight(b, "\x00")) }

// A bit that flips anywhere in any file of a stopped node is found, or an older snapshot takes
// its place, or nothing reads it: what a node would act on is never another.
func TestFlippedBits(t *testing.T) {
	dir := lived(t)
	s, err := openDisk(copied(t, dir), discard(), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := contents(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(18, 2))
	all := kinds(t, dir)
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		files := all[kind]
		for _, where := range []string{"used", "unused"} {
			places := 100
			if kind == "guard" || where == "unused" {
				places = 25 // nothing is read there
			}
			found, repaired, nothing, tried := 0, 0, 0, 0
			for range places {
				file := files[r.IntN(len(files))]
				b, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil {
					t.Fatal(err)
				}
				at, n := 0, used(b)
				if where == "unused" {
					if at, n = n, len(b)-n; n == 0 {
						break
					}
				}
				at += r.IntN(n)
				b[at] ^= 1 << r.IntN(8)
				tried++
				broken := copied(t, dir)
				if err := os.WriteFile(filepath.Join(broken, file), b, 0o600); err != nil {
					t.Fatal(err)
				}
				s, err := DiskStores(broken, discard())
				switch {
				case err != nil:
					wantDamaged(t, broken, err)
					found++
				case len(s.Notes) > 0:
					repaired++
				default:
					nothing++
				}
				if err == nil {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
					s, err = DiskStores(broken, discard())
					if err != nil {
						t.Fatal(err)
					}
					got := contents(t, s)
					if err := s.Close(); err != nil {
						t.Error(err)
					}
					if got != want {
						t.Errorf("%s, byte %d: in silence it became\n%s, not\n%s", file, at, got, want)
					}
				}
				if err := os.RemoveAll(broken); err != nil {
					t.Fatal(err)
				}
			}
			if tried > 0 {
				t.Logf("%s, %s space: %d places, %d named, %d repaired, %d without effect", kind, where, tried, found, repaired, nothing)
			}
		}
	}
}

func copied(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// A learning rate that was changed on disk is found, though the log's own checksum is right.
func TestChangedEntryWithARightFrame(t *testing.T) {
	plain := raft.NewInmemStore()
	s := Sealed(plain)
	if err := s.StoreLogs([]*raft.Log{{Index: 1, Term: 1, Data: []byte("lr=0.01")}, {Index: 2, Term: 1, Data: []byte("lr=0.02")}}); err != nil {
		t.Fatal(err)
	}
	var l raft.Log
	if err := s.GetLog(2, &l); err != nil || string(l.Data) != "lr=0.02" {
		t.Fatalf("%q, %v", l.Data, err)
	}
	for name, change := range map[string]func(l *raft.Log){
		"data":  func(l *raft.Log) { l.Data = []byte("lr=0.92") },
		"term":  func(l *raft.Log) { l.Term = 2 },
		"type":  func(l *raft.Log) { l.Type = raft.LogNoop },
		"sum":   func(l *raft.Log) { l.Extensions = append([]byte{9}, l.Extensions[1:]...) },
		"unsum": func(l *raft.Log) { l.Extensions = nil },
	} {
		c := l
		change(&c)
		if err := plain.StoreLog(&c); err != nil {
			t.Fatal(err)
		}
		var got raft.Log
		if err := s.GetLog(2, &got); err == nil {
			t.Errorf("%s: not found", name)
		}
		if name != "unsum" {
			if err := s.StoreLog(&c); err == nil {
				t.Errorf("%s: taken from a leader", name)
			}
		}
	}
	if err := s.GetLog(3, &l); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("%v", err)
	}
}

// A directory of the version before is accepted once, keeps all it held, and is written anew.
func TestUpgrade(t *testing.T) {
	old := t.TempDir()
	d := diskDir(old)
	if err := errors.Join(os.MkdirAll(d.log(), 0o700), os.MkdirAll(d.snapshots(), 0o700)); err != nil {
		t.Fatal(err)
	}
	w, err := wal.Open(d.log(), wal.WithSegmentSize(segmentSize))
	if err != nil {
		t.Fatal(err)
	}
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(old, keepSnapshots, newLogger(discard()))
	if err != nil {
		t.Fatal(err)
	}
	s := Stores{Log: w, Stable: w, Snapshots: snapshots}
	entries(t, s, 1, 60)
	promise(t, w)
	if err := w.SetUint64(markKey, 60); err != nil {
		t.Fatal(err)
	}
	snapshotAt(t, s, 45)
	want := contents(t, s)
	if err := w.DeleteRange(1, 30); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// A crash may come after any step of it.
	for step, crash := range []func(d diskDir) error{
		func(diskDir) error { return nil },
		func(d diskDir) error { return os.Mkdir(d.newLog(), 0o700) },
		func(d diskDir) error { return os.Rename(d.log(), d.oldLog()) },
	} {
		dir := copied(t, old)
		d := diskDir(dir)
		if step == 2 {
			was, err := raft.NewFileSnapshotStoreWithLogger(dir, keepSnapshots, newLogger(discard()))
			if err = errors.Join(err, d.copyLog(was, newLogger(discard()))); err != nil {
				t.Fatal(err)
			}
			if err := d.copySnapshots(was); err != nil {
				t.Fatal(err)
			}
		}
		if err := crash(d); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s, err := DiskStores(dir, discard())
			if err != nil {
				t.Fatal(err)
			}
			if got := contents(t, s); got != want {
				t.Errorf("step %d: %s, not %s", step, got, want)
			}
			if first, err := s.Log.FirstIndex(); err != nil || first != 31 {
				t.Errorf("begins with %d, %v", first, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		kinds(t, dir) // nothing is left over
		// The version before refuses it.
		if _, err := wal.Open(d.log(), wal.WithSegmentSize(segmentSize)); err == nil {
			t.Error("the version before would begin an empty log")
		}
	}
	t.Run("damaged", func(t *testing.T) {
		dir := copied(t, old)
		f := theLog(t, dir)
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		copy(b[used(b)/2:], "yyyy\xff\xff\xff\xff")
		binary.LittleEndian.PutUint32(b[used(b)-4:], 0)
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = DiskStores(dir, discard())
		wantDamaged(t, dir, err)
	})
}

// Nobody but the node's user reads its log.
func TestFilesArePrivate(t *testing.T) {
	dir := lived(t)
	for _, files := range kinds(t, dir) {
		for _, f := range files {
			if err := os.Chmod(filepath.Join(dir, f), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	s, err := DiskStores(dir, discard())
	if err != nil {
		t.Fatal(err)
	}
	snapshotAt(t, s, 60)
	if err := errors.Join(s.Log.DeleteRange(51, 60), s.Close()); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && path != dir && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A ledger and a snapshot that hopmesh did not write are refused, whatever they hold.
func FuzzFiles(f *testing.F) {
	dir := f.TempDir()
	body := []byte(`{"log":{"NextSegmentID":1},"stable":{"CurrentTerm":"BwAAAAAAAAA="}}`)
	if err := writeSummed(filepath.Join(dir, "f"), ledgerMagic, body); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "f"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(body)
	f.Add([]byte(`{"ID":"1-2-3","Size":2,"Version":1}` + "\nab"))
	f.Add([]byte(ledgerMagic + " \n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if rest, err := unsum(b, ledgerMagic, maxLedger); err == nil {
			b = rest
		}
		_, _ = decodeLedger(b)
		if meta, body, err := decodeSnapshot("1-2-3", b); err == nil && (meta.ID != "1-2-3" || meta.Size != int64(len(body))) {
			t.Fatalf("%+v", meta)
		}
		_, _ = plan.UnmarshalSnapshot(b)
	})
}

// What can be read of a damaged log is what it was, up to the damage.
func TestSalvage(t *testing.T) {
	dir := lived(t)
	for name, c := range map[string]struct {
		spoil func(b []byte)
		glob  string
		want  string
		last  uint64
	}{
		"nothing":        {func([]byte) {}, "wal/*1.wal", "up to entry 60", 60},
		"the last entry": {func(b []byte) { b[bytes.LastIndexByte(b, 'x')] ^= 1 }, "wal/*1.wal", "up to entry 59 of its log, and whatever came after is lost", 59},
		"the ledger":     {func(b []byte) { b[len(b)/2] ^= 1 }, "wal/ledger", "up to entry 45 of its log, and whatever came after is lost", 0},
	} {
		t.Run(name, func(t *testing.T) {
			broken := copied(t, dir)
			files, err := filepath.Glob(filepath.Join(broken, c.glob))
			if err != nil || len(files) != 1 {
				t.Fatalf("%v, %v", files, err)
			}
			b, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			c.spoil(b)
			if err := os.WriteFile(files[0], b, 0o600); err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(t.TempDir(), "raft")
			if _, err := Salvage(broken, to, discard()); err != nil {
				t.Fatal(err)
			}
			kept, err := Salvage(broken, to, discard()) // as after an interruption
			if err != nil || !strings.Contains(kept, c.want) {
				t.Fatalf("%q, %v", kept, err)
			}
			s, err := DiskStores(to, discard())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			last, err := s.Log.LastIndex()
			if err != nil || last != c.last {
				t.Errorf("ends with %d, not %d, %v", last, c.last, err)
			}
			if meta, _, err := newestSnapshot(s.Snapshots); err != nil || meta.Index != 45 {
				t.Errorf("%v, %v", meta, err)
			}
		})
	}
	if _, err := Salvage(t.TempDir(), filepath.Join(t.TempDir(), "raft"), discard()); err == nil || !strings.Contains(err.Error(), "nothing of the plan can be read") {
		t.Errorf("%v", err)
	}
}

// A snapshot of a later version is not damaged: that one can read it.
func TestSalvageOfALaterVersion(t *testing.T) {
	broken := copied(t, lived(t))
	s, err := DiskStores(broken, discard())
	if err != nil {
		t.Fatal(err)
	}
	meta, state, err := newestSnapshot(s.Snapshots)
	if err != nil {
		t.Fatal(err)
	}
	later := *state
	later.Needs, later.Index = plan.Newest+1, meta.Index+5
	meta.ID, meta.Index = meta.ID+"0", later.Index
	body, err := plan.MarshalSnapshot(&later)
	if err != nil {
		t.Fatal(err)
	}
	meta.Size = int64(len(body))
	if err := errors.Join(s.Snapshots.(*snapshotStore).keep(*meta, body), s.Close()); err != nil {
		t.Fatal(err)
	}
	if kept, err := Salvage(broken, filepath.Join(t.TempDir(), "raft"), discard()); !errors.Is(err, plan.ErrUnknownCommand) {
		t.Errorf("%q, %v", kept, err)
	}
}
