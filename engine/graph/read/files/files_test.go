package files_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph/read/files"
)

// Paths are distinguished from addresses, and a pipe is neither a file nor a folder.
func TestLocalNames(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "b.csv"), filepath.Join(dir, "a")
	if err := os.WriteFile(file, []byte("0 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]files.What{dir: files.Folder, file: files.Regular, pipe: files.Other} {
		if got, err := files.Look(t.Context(), name); got != want || err != nil {
			t.Errorf("%s is %v, not %v: %v", name, got, want, err)
		}
	}
	if _, err := files.Look(t.Context(), file+"x"); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
	opened := make(chan error, 1)
	go func() {
		_, err := files.Open(t.Context(), pipe)
		opened <- err
	}()
	select {
	case err := <-opened:
		if err == nil {
			t.Error("a pipe was opened")
		}
	case <-time.After(time.Minute):
		t.Error("to open a pipe waits for somebody who writes to it")
	}
	if files.Check(t.Context(), pipe) == nil || files.Check(t.Context(), file) != nil {
		t.Error("a pipe passes, or a file does not")
	}
	if names, err := files.List(t.Context(), dir); err != nil || !slices.Equal(names, []string{"a", "b.csv"}) {
		t.Errorf("%v, %v", names, err)
	}
	if got := files.Join(dir, files.Base(file)); got != file {
		t.Errorf("%s became %s", file, got)
	}
	if got := files.Join("s3://b/x", "p%2Fq"); files.Base(got) != "p%2Fq" {
		t.Errorf("a name with a %% became %s, of the base %s", got, files.Base(got))
	}
}
