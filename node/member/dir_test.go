package member

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/mesh"
)

func TestDataDirIsLocked(t *testing.T) {
	path := t.TempDir()
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDir(path); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("opened twice: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestSavedPeers(t *testing.T) {
	d := &Dir{path: t.TempDir()}
	if got := d.loadPeers(); got != nil {
		t.Errorf("none saved, got %v", got)
	}
	want := []mesh.Peer{{ID: "a", Addr: netip.MustParseAddrPort("10.0.0.1:7946")}}
	if err := d.savePeers(want); err != nil {
		t.Fatal(err)
	}
	if got := d.loadPeers(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if err := os.WriteFile(d.peersFile(), []byte(`[{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := d.loadPeers(); got != nil {
		t.Errorf("a damaged file gave %v", got)
	}
}

// A log without an identity is somebody else's, or a copy: no new node may take
// it over.
func TestLogWithoutIdentityIsRefused(t *testing.T) {
	d := &Dir{path: t.TempDir()}
	if err := emptyRaft(d); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(d.raft(), "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := emptyRaft(d); err == nil || !strings.Contains(err.Error(), d.raft()) {
		t.Errorf("got %v", err)
	}
}

// An identity without its log is no node any more: only a fresh one begins a log.
func TestIdentityWithoutLogIsRefused(t *testing.T) {
	d := &Dir{path: t.TempDir()}
	if err := d.checkLog(); !errors.Is(err, consensus.ErrDamaged) || !strings.Contains(err.Error(), d.raft()) {
		t.Errorf("a lost log was taken: %v", err)
	}
	if err := d.begin(); err != nil {
		t.Fatal(err)
	}
	if err := d.checkLog(); err != nil || !d.fresh() {
		t.Errorf("a fresh node was refused: %v", err)
	}
	if err := d.begun(); err != nil {
		t.Fatal(err)
	}
	if err := d.begun(); err != nil || d.fresh() {
		t.Errorf("still fresh, %v", err)
	}
	if err := os.MkdirAll(filepath.Join(d.raft(), "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.checkLog(); err != nil {
		t.Error(err)
	}
}

func TestVotersFile(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
		says string
	}{
		"ids, comments, blanks": {"aa # the first\n\n# none\n bb \n", []string{"aa", "bb"}, ""},
		"none":                  {"# nobody\n", nil, "no voter"},
		"two on a line":         {"aa\naa bb\n", nil, "line 2"},
		"twice":                 {"aa\nbb\naa\n", nil, "line 3"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "voters")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readVoters(file)
			if !slices.Equal(got, c.want) && c.says == "" {
				t.Errorf("got %v, %v", got, err)
			}
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), file)) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := readVoters("no/such/file"); err == nil {
		t.Error("read a file that is not there")
	}
}

// A listener that is slow loses values, and holds nobody up.

// The damaged log is kept whatever an interrupted recovery left in its place, until a later
// setback brings another.
func TestAsideKeepsTheDamagedLog(t *testing.T) {
	d := &Dir{path: t.TempDir()}
	put := func(what string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(d.raft(), 0o700), os.WriteFile(filepath.Join(d.raft(), "f"), []byte(what), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	aside := func() error { return Aside(d.raft()) }
	kept := func(want string) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(d.damaged(), "f"))
		if err != nil || string(b) != want || !empty(d.raft()) {
			t.Fatalf("kept %q, %v", b, err)
		}
	}
	put("damaged")
	if err := d.SetBack(consensus.ErrDamaged, aside); err != nil {
		t.Fatal(err)
	}
	kept("damaged")
	put("half recovered")
	if err := aside(); err != nil {
		t.Fatal(err)
	}
	kept("damaged")
	if err := d.overcome(); err != nil {
		t.Fatal(err)
	}
	put("damaged later")
	if err := d.SetBack(consensus.ErrDamaged, aside); err != nil {
		t.Fatal(err)
	}
	kept("damaged later")
}
