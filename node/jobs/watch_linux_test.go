package jobs

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := newWatch(dir, map[string]bool{"file": true})
	if err != nil {
		t.Fatal(err)
	}
	if !w.changed() {
		t.Error("what was there before counts as seen")
	}
	for name, change := range map[string]func() error{
		"written":   func() error { return os.WriteFile(path, make([]byte, 100), 0o600) },
		"cut short": func() error { return os.Truncate(path, 10) },
		"renamed":   func() error { return os.Rename(path, path+"x") },
		"removed":   func() error { return os.Remove(path) },
	} {
		w.seen()
		if w.changed() {
			t.Errorf("it has changed before it is %s", name)
		}
		if name == "removed" || name == "renamed" { // in any order
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			w.seen()
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if first := w.changed(); !first || !w.changed() {
			t.Errorf("it is %s, and that is not noticed", name)
		}
	}
	w.seen()
	for _, change := range []func() error{
		func() error { return os.WriteFile(filepath.Join(dir, "other"), make([]byte, 100), 0o600) },
		func() error { return os.Rename(filepath.Join(dir, "other"), path+".part") },
		func() error { return os.Remove(path + ".part") },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if w.changed() {
			t.Error("another file counts")
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "new"), path); err != nil {
		t.Fatal(err)
	}
	if !w.changed() {
		t.Error("it is replaced, and that is not noticed")
	}
	w.seen()
	w.again()
	if !w.changed() {
		t.Error("it was taken back")
	}
	w.close()
	w.close()
	if !w.changed() {
		t.Error("a closed one knows that nothing has changed")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	of, err := newWatch(dir, map[string]bool{"file": true})
	if err != nil {
		t.Fatal(err)
	}
	of.seen()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if !of.changed() {
		t.Error("the folder is gone, and that is not noticed")
	}
	of.close()
	if _, err := newWatch(filepath.Join(dir, "none"), nil); err == nil {
		t.Error("a folder that is not there is watched")
	}
}

func BenchmarkWatch(b *testing.B) {
	w, err := newWatch(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer w.close()
	w.seen()
	for b.Loop() {
		w.changed()
	}
}
