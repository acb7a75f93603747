package consensus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

// history is a directory as kill -9 leaves it: opened, written to, never closed.
func history(t *testing.T, write func(s Stores)) string {
	t.Helper()
	live, dead := t.TempDir(), t.TempDir()
	s, err := openDisk(live, discard(), 0)
	if err != nil {
		t.Fatal(err)
	}
	write(s)
	if err := os.CopyFS(dead, os.DirFS(live)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dead
}

func entries(t *testing.T, s Stores, from, to uint64) {
	t.Helper()
	for i := from; i <= to; i++ {
		if err := s.Log.StoreLog(&raft.Log{Index: i, Term: 1, Type: raft.LogNoop, Data: []byte(strings.Repeat("x", 200))}); err != nil {
			t.Fatal(err)
		}
	}
}

func snapshotAt(t *testing.T, s Stores, index uint64) {
	t.Helper()
	_, nowhere := raft.NewInmemTransport("a")
	k, err := s.Snapshots.Create(1, index, 1, raft.Configuration{Servers: []raft.Server{voter("a")}}, 1, nowhere)
	if err != nil {
		t.Fatal(err)
	}
	if err := (snapshot{&plan.State{Index: index, MeshID: "m"}}).Persist(k); err != nil {
		t.Fatal(err)
	}
}

// reopen returns the last entry, or what DiskStores says.
func reopen(t *testing.T, dir string) (uint64, error) {
	t.Helper()
	s, err := DiskStores(dir, discard())
	if err != nil {
		return 0, err
	}
	last, err := s.Log.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	return last, s.Close()
}

func wantDamaged(t *testing.T, dir string, err error) {
	t.Helper()
	if !errors.Is(err, ErrDamaged) {
		t.Fatalf("not found to be damaged: %v", err)
	}
	if text := err.Error(); !strings.Contains(text, dir) || strings.Contains(text, "\n") {
		t.Fatalf("not one sentence that says where: %s", text)
	}
}

func TestDiskRemembers(t *testing.T) {
	dir := history(t, func(s Stores) { entries(t, s, 1, 50) })
	for range 2 {
		if last, err := reopen(t, dir); err != nil || last != 50 {
			t.Fatalf("%d, %v", last, err)
		}
	}
}

// TestCutFiles cuts each file at many lengths: either nothing was lost, or it is
// said; never a panic, a hang, or an end that is missing unnoticed.
func TestCutFiles(t *testing.T) {
	dir := history(t, func(s Stores) {
		entries(t, s, 1, 50)
		if err := s.Stable.SetUint64([]byte("CurrentTerm"), 1); err != nil {
			t.Fatal(err)
		}
	})
	files, err := filepath.Glob(filepath.Join(dir, "wal", "*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("files: %v, %v", files, err)
	}
	for _, f := range files {
		if filepath.Base(f) == metadb.FileName {
			continue // only versions before this one read it
		}
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		var lengths []int64
		for n := int64(0); n < min(info.Size(), 64<<10); n += 499 {
			lengths = append(lengths, n)
		}
		lost := 0
		for _, n := range append(lengths, info.Size()/2, info.Size()-1) {
			broken := t.TempDir()
			if err := os.CopyFS(broken, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(filepath.Join(broken, "wal", filepath.Base(f)), n); err != nil {
				t.Fatal(err)
			}
			last, err := reopen(t, broken)
			switch {
			case err != nil:
				lost++
				wantDamaged(t, broken, err)
			case last != 50:
				t.Fatalf("%s cut to %d bytes: ends with entry %d, and nobody notices", filepath.Base(f), n, last)
			}
		}
		if lost == 0 {
			t.Errorf("%s: no cut did any harm", filepath.Base(f))
		}
	}
}

// Earlier versions never find a log without what they refuse.
func TestGuardAgainstEarlierVersions(t *testing.T) {
	dir := history(t, func(s Stores) { entries(t, s, 1, 5) })
	guard := filepath.Join(dir, "wal", metadb.FileName)
	if err := os.Remove(guard); err != nil {
		t.Fatal(err)
	}
	if last, err := reopen(t, dir); err != nil || last != 5 {
		t.Fatalf("%d, %v", last, err)
	}
	if b, err := os.ReadFile(guard); err != nil || string(b) != guardText {
		t.Fatalf("%q, %v", b, err)
	}
	crashed := t.TempDir() // between the guard and the ledger
	err := errors.Join(os.Mkdir(filepath.Join(crashed, "wal"), 0o700), os.WriteFile(filepath.Join(crashed, "wal", metadb.FileName), []byte(guardText), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reopen(t, crashed); err != nil {
		t.Fatal(err)
	}
}

func TestOverwrittenEnd(t *testing.T) {
	dir := history(t, func(s Stores) { entries(t, s, 1, 50) })
	f := theLog(t, dir)
	b, err := os.ReadFile(f)
	if err != nil {
		t.Fatal(err)
	}
	end := strings.LastIndex(string(b), "xxxx")
	copy(b[end-100:], strings.Repeat("y", 50))
	if err := os.WriteFile(f, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = reopen(t, dir)
	wantDamaged(t, dir, err)
}

func theLog(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
	if err != nil || len(files) != 1 {
		t.Fatalf("log files: %v, %v", files, err)
	}
	return files[0]
}

// A node may stop when its newest snapshot holds all that its log does. A log that ends early is
// damaged then, too: nothing is lost, but Raft can't start from a log that ends before it begins,
// and the entries that are left may be others than the plan's.
func TestDamagedFramesBeforeASnapshot(t *testing.T) {
	dir := history(t, func(s Stores) {
		entries(t, s, 1, 24)
		snapshotAt(t, s, 24)
		if err := s.Log.DeleteRange(1, 12); err != nil {
			t.Fatal(err)
		}
	})
	f := theLog(t, dir)
	whole, err := os.ReadFile(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(f, int64(used(whole)+16<<10)); err != nil {
		t.Fatal(err)
	}
	const frame = 8 // its header: the type, and four bytes of the length or checksum
	for at := 32; at < used(whole); {
		for _, place := range []int{at, at + 4, at + 6} {
			broken := copied(t, dir)
			b := slices.Clone(whole[:used(whole)+16<<10])
			b[place] ^= 2
			if err := os.WriteFile(theLog(t, broken), b, 0o600); err != nil {
				t.Fatal(err)
			}
			// A length may still be right where the next frame begins.
			if last, err := reopen(t, broken); place == at || err != nil || last != 24 {
				wantDamaged(t, broken, err)
			}
			if err := os.RemoveAll(broken); err != nil {
				t.Fatal(err)
			}
		}
		size := 0
		if whole[at] != 3 { // a commit has no content
			size = int(binary.LittleEndian.Uint32(whole[at+4:]))
		}
		at += frame + (size+frame-1)/frame*frame
	}
}

func TestMissingFiles(t *testing.T) {
	dir := history(t, func(s Stores) { entries(t, s, 1, 50) })
	if err := os.Remove(theLog(t, dir)); err != nil {
		t.Fatal(err)
	}
	_, err := reopen(t, dir)
	wantDamaged(t, dir, err)
}

func TestLostSnapshot(t *testing.T) {
	compacted := func(s Stores) {
		entries(t, s, 1, 50)
		snapshotAt(t, s, 40)
		if err := s.Log.DeleteRange(1, 30); err != nil {
			t.Fatal(err)
		}
	}
	dir := history(t, compacted)
	if last, err := reopen(t, dir); err != nil || last != 50 {
		t.Fatalf("%d, %v", last, err)
	}
	states, err := filepath.Glob(filepath.Join(dir, "snapshots", "*"))
	if err != nil || len(states) != 1 {
		t.Fatalf("snapshots: %v, %v", states, err)
	}
	t.Run("cut", func(t *testing.T) {
		if err := os.Truncate(states[0], 10); err != nil {
			t.Fatal(err)
		}
		_, err := reopen(t, dir)
		wantDamaged(t, dir, err)
	})
	t.Run("gone", func(t *testing.T) {
		if err := os.RemoveAll(states[0]); err != nil {
			t.Fatal(err)
		}
		_, err := reopen(t, dir)
		wantDamaged(t, dir, err)
	})
}

func TestUnreadableSnapshotBesideAnOlderOne(t *testing.T) {
	dir := history(t, func(s Stores) {
		entries(t, s, 1, 50)
		snapshotAt(t, s, 20)
		snapshotAt(t, s, 40)
	})
	newest, err := filepath.Glob(filepath.Join(dir, "snapshots", "1-40-*"))
	if err != nil || len(newest) != 1 {
		t.Fatalf("snapshots: %v, %v", newest, err)
	}
	if err := os.Truncate(newest[0], 10); err != nil {
		t.Fatal(err)
	}
	if last, err := reopen(t, dir); err != nil || last != 50 {
		t.Fatalf("the log reaches back to the older one, but: %d, %v", last, err)
	}
}

func TestCrashDuringASnapshot(t *testing.T) {
	dir := history(t, func(s Stores) {
		entries(t, s, 1, 50)
		_, nowhere := raft.NewInmemTransport("a")
		k, err := s.Snapshots.Create(1, 40, 1, raft.Configuration{}, 1, nowhere)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(k, "half a snapsh"); err != nil {
			t.Fatal(err)
		}
	})
	if last, err := reopen(t, dir); err != nil || last != 50 {
		t.Fatalf("%d, %v", last, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "snapshots")); err != nil || len(left) != 0 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
}

// A snapshot from the leader replaces the log, but the crash came in between.
func TestCrashBeforeTheLogIsReplaced(t *testing.T) {
	dir := history(t, func(s Stores) {
		entries(t, s, 1, 50)
		snapshotAt(t, s, 70)
	})
	s, err := DiskStores(dir, discard())
	if err != nil {
		t.Fatal(err)
	}
	entries(t, s, 71, 72)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if last, err := reopen(t, dir); err != nil || last != 72 {
		t.Fatalf("%d, %v", last, err)
	}
}

func TestRaftMayDropTheEndOfTheLog(t *testing.T) {
	for name, drop := range map[string]func(s Stores) uint64{
		"a conflict": func(s Stores) uint64 {
			if err := s.Log.DeleteRange(41, 50); err != nil {
				t.Fatal(err)
			}
			return 40
		},
		"replaced by a snapshot of less": func(s Stores) uint64 {
			snapshotAt(t, s, 45)
			if err := s.Log.DeleteRange(1, 50); err != nil {
				t.Fatal(err)
			}
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			var want uint64
			dir := history(t, func(s Stores) {
				entries(t, s, 1, 50)
				want = drop(s)
			})
			if last, err := reopen(t, dir); err != nil || last != want {
				t.Fatalf("%d instead of %d, %v", last, want, err)
			}
		})
	}
}

func TestNoPlaceForThePlan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := DiskStores(filepath.Join(file, "raft"), discard())
	if !errors.Is(err, errUnwritable) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "{agent.data-dir}") {
		t.Fatalf("%v", err)
	}
}

// openAlone runs one node over real disks, in real time.
func openAlone(tb testing.TB, dir string) *Consensus {
	tb.Helper()
	s, err := DiskStores(dir, discard())
	if err != nil {
		tb.Fatal(err)
	}
	c, err := Open(Config{
		ID: "a", Layer: newNetwork().listen("a"), Stores: s, Genesis: genesis("a"), Log: discard(),
		Health: func(string) (bool, time.Duration) { return false, 0 },
		Probe:  func(context.Context, string) (uint64, error) { return 0, errUnreachable },
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		changed := c.Changed()
		if c.IsLeader() && c.State().MeshID != "" {
			return c
		}
		select {
		case <-changed:
		case <-ctx.Done():
			tb.Fatal("it does not come to lead")
		}
	}
}

func closeIt(tb testing.TB, c *Consensus) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		tb.Fatal(err)
	}
}

func TestNodeOnDisk(t *testing.T) {
	dir := t.TempDir()
	c := openAlone(t, dir)
	for i := range 20 {
		if _, err := c.Apply(t.Context(), plan.CreateToken{Token: plan.NewToken(fmt.Sprintf("%012d", i), time.Now(), 0), Now: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	want, err := c.Apply(t.Context(), plan.AddMember{Member: member("b")})
	if err != nil {
		t.Fatal(err)
	}
	closeIt(t, c)
	c = openAlone(t, dir)
	if got := c.State(); got.Digest() != want.Digest() {
		t.Errorf("remembered %+v, was %+v", got, want)
	}
	closeIt(t, c)
	s, err := DiskStores(dir, discard())
	if err != nil {
		t.Fatal(err)
	}
	if err := Recover(s, "a", []string{"a"}, discard()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c = openAlone(t, dir)
	defer closeIt(t, c)
	if got := c.State(); got.Digest() != want.Digest() {
		t.Errorf("recovered %+v, was %+v", got, want)
	}
}

// BenchmarkApply is a change of the plan on one node, down to the disk.
func BenchmarkApply(b *testing.B) {
	c := openAlone(b, b.TempDir())
	defer closeIt(b, c)
	ctx := context.Background()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if _, err := c.Apply(ctx, plan.UpdateMember{ID: "a", Version: fmt.Sprint(n)}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSync is its yardstick: 4 KiB to the same disk.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "f"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4<<10)
	for b.Loop() {
		if _, err := f.WriteAt(block, 0); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}
