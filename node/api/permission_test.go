package api

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Who is refused a socket reads for whom it is, by the socket or, where the folder is closed, by
// that.
func TestWhoMayConnect(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	owner, group := strconv.Itoa(os.Geteuid()), strconv.Itoa(os.Getegid())
	if u, err := user.LookupId(owner); err == nil {
		owner = u.Username
	}
	if g, err := user.LookupGroupId(group); err == nil {
		group = g.Name
	}
	if err := os.Chown(dir, -1, os.Getegid()); err != nil {
		t.Fatal(err)
	}
	alone, both := "for the user "+owner+" alone", "for the user "+owner+" and the group "+group+":"
	for _, c := range []struct {
		socket           string
		ofDir, ofSocket  os.FileMode
		says, suggestion string
	}{
		{path, 0o700, 0o600, alone, "--api-group"},
		{path, 0o700, 0o640, alone, "--api-group"},
		{path, 0o700, 0o660, both, "usermod -aG " + group},
		// As for a user who can't look at the socket.
		{filepath.Join(dir, "none"), 0o700, 0o600, alone, "--api-group"},
		{filepath.Join(dir, "none"), 0o710, 0o600, both, "usermod -aG " + group},
		{filepath.Join(dir, "none", "none"), 0o710, 0o600, "", "run this as the user that runs `hopmesh agent`"},
	} {
		for name, mode := range map[string]os.FileMode{dir: c.ofDir, path: c.ofSocket} {
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		}
		if got := whoMay(c.socket); !strings.Contains(got, c.says) || !strings.Contains(got, c.suggestion) {
			t.Errorf("%s in %o of %o: %s", c.socket, c.ofDir, c.ofSocket, got)
		}
	}
}
