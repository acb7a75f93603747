package identity

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What Files returns is the whole identity, in the middle of a succession of the authority, too.
func TestFilesAreTheWholeIdentity(t *testing.T) {
	was, err := Found(filepath.Join(t.TempDir(), "identity"), "n1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	next, key, err := was.NewSuccessor(time.Now())
	if err == nil {
		err = was.HoldNextCAKey(key)
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := was.Files()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if held, err := os.ReadFile(was.path(name)); err != nil || string(held) != string(b) {
			t.Errorf("%s is not as it is on disk: %v", name, err)
		}
	}
	if held, err := os.ReadDir(was.dir); err != nil || len(held) != len(files) {
		t.Errorf("there are %d files, of %d on disk: %v", len(files), len(held), err)
	}
	now, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if fresh, err := now.Succeed(next); err != nil || !fresh || !now.HasCAKey() || now.ID() != was.ID() || now.PublicKeyHash() != was.PublicKeyHash() {
		t.Errorf("after the succession, CA key %v: %v", now.HasCAKey(), err)
	}
}
