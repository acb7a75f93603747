package secret

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// places gives this test directories of its own, and returns them.
func places(t *testing.T) (run, temp string) {
	t.Helper()
	run, temp = t.TempDir(), t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", run)
	t.Setenv("TMPDIR", temp)
	return filepath.Join(run, "hopmesh"), filepath.Join(temp, fmt.Sprintf("hopmesh-%d", os.Geteuid()))
}

func save(t *testing.T, addr, secret string) string {
	t.Helper()
	path, err := Save(netip.MustParseAddrPort(addr), secret)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSecretIsFoundByAddress(t *testing.T) {
	run, _ := places(t)
	four, six := New(), New()
	path := save(t, "127.0.0.1:7947", four)
	save(t, "[::1]:7948", six)
	if four == six || len(four) != 2*size {
		t.Fatalf("secrets %s and %s", four, six)
	}
	for addr, want := range map[string][2]string{
		"127.0.0.1:7947":          {four, "127.0.0.1:7947"},
		"localhost:7947":          {four, "127.0.0.1:7947"},
		"LOCALHOST:7948":          {six, "[::1]:7948"},
		"[::1]:7948":              {six, "[::1]:7948"},
		"[::ffff:127.0.0.1]:7947": {four, "127.0.0.1:7947"},
		"127.0.0.1:7948":          {},
		"127.0.0.2:7947":          {},
		"10.0.0.1:7947":           {},
		"evil.example:7947":       {},
		"127.0.0.1":               {},
		"127.0.0.1:../x":          {},
	} {
		if got, at := Find(addr); strings.Join(got, " ") != want[0] || at != want[1] {
			t.Errorf("%s: %q at %q", addr, got, at)
		}
	}
	for name, want := range map[string]os.FileMode{run: 0o700, path: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v (%v)", name, info.Mode(), err)
		}
	}
	next := New()
	save(t, "127.0.0.1:7947", next) // by the next daemon, before this one has ended
	Remove(path, four)
	if got, _ := Find("127.0.0.1:7947"); strings.Join(got, " ") != next {
		t.Errorf("the next daemon's secret was removed: %q", got)
	}
	Remove(path, next)
	if got, _ := Find("127.0.0.1:7947"); strings.Join(got, " ") != "" {
		t.Errorf("%q is left", got)
	}
	left, err := os.ReadDir(run)
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// Where the one place can't be used, the other is, and a client that knows of both finds it.
func TestSecretWithoutARuntimeDirectory(t *testing.T) {
	run, temp := places(t)
	t.Setenv("XDG_RUNTIME_DIR", "")
	want := New()
	if path := save(t, "127.0.0.1:1", want); filepath.Dir(path) != temp {
		t.Errorf("it is at %s", path)
	}
	t.Setenv("XDG_RUNTIME_DIR", filepath.Dir(run))
	if got, _ := Find("127.0.0.1:1"); strings.Join(got, " ") != want {
		t.Errorf("found %q", got)
	}
}

// What another user may have prepared is neither written to nor believed.
func TestFoldersThatOthersMayOpen(t *testing.T) {
	_, temp := places(t)
	t.Setenv("XDG_RUNTIME_DIR", "relative")
	addr := netip.MustParseAddrPort("127.0.0.1:1")
	planted := New()
	for name, prepare := range map[string]func() error{
		"open to all": func() error { return os.MkdirAll(temp, 0o755) },
		"a link":      func() error { return os.Symlink(t.TempDir(), temp) },
		"a file":      func() error { return os.WriteFile(temp, nil, 0o600) },
	} {
		if err := os.RemoveAll(temp); err != nil {
			t.Fatal(err)
		}
		if err := prepare(); err != nil {
			t.Fatal(err)
		}
		if name != "a file" {
			if err := os.WriteFile(filepath.Join(temp, "api-127.0.0.1:1"), []byte(planted), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Save(addr, New()); err == nil || !strings.Contains(err.Error(), temp) {
			t.Errorf("%s: %v", name, err)
		}
		if got, _ := Find("127.0.0.1:1"); strings.Join(got, " ") != "" {
			t.Errorf("%s: believed", name)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(New()))
	f.Add([]byte(New() + "\n"))
	f.Add([]byte("\n"))
	path := filepath.Join(f.TempDir(), "s")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := read(path)
		if (got == "") == (err == nil) || got != "" && len(got) != 2*size {
			t.Fatalf("%q reads as %q (%v)", b, got, err)
		}
	})
}
