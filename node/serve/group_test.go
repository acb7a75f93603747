package serve

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// With a group its users reach every socket, and can't look into the folder of the node's own.
func TestGroupOfSockets(t *testing.T) {
	dir, err := os.MkdirTemp("", "hm") //nolint:usetesting // its path would be too long for a unix socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	own, other := filepath.Join(dir, "s"), filepath.Join(t.TempDir(), "o")
	cfg := Config{Socket: own, Addresses: []string{"unix:" + other}, Full: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler)}
	gid := os.Getegid()
	for _, c := range []struct {
		group      string
		folder, as os.FileMode
	}{{"", 0o700, 0o600}, {strconv.Itoa(gid), 0o710, 0o660}, {"", 0o700, 0o600}} {
		cfg.Group = c.group
		opened, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for path, mode := range map[string]os.FileMode{dir: c.folder, own: c.as, other: c.as} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != mode {
				t.Errorf("%q: %s has the mode %o, want %o", c.group, path, info.Mode().Perm(), mode)
			}
			if s := info.Sys().(*syscall.Stat_t); c.group != "" && path != other && int(s.Gid) != gid {
				t.Errorf("%s is of group %d", path, s.Gid)
			}
		}
		for _, l := range opened {
			_ = l.Close()
		}
	}
	// A folder that was open to a group is so no longer: the group may be another now.
	if err := os.Chmod(dir, 0o775); err != nil {
		t.Fatal(err)
	}
	if err := enter(dir, gid); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o715 {
		t.Errorf("the folder is %v (%v)", info.Mode(), err)
	}
	// One that a user has opened stays so.
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := enter(dir, nobody); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the folder is %v (%v)", info.Mode(), err)
	}
	cfg.Group = "no-such-group"
	if _, err := Open(cfg); err == nil || !strings.Contains(err.Error(), `no group "no-such-group"`) || !strings.Contains(err.Error(), "--api-group") {
		t.Errorf("%v", err)
	}
}
