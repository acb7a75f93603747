package overflow

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file has no name, is read as it was written, and says what to do where it can't be made or
// written.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	f, err := New(dir, 10)
	if err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("the folder has %v, %v", names, err)
	}
	if err := f.Write([]byte{7, 8}, 3); err != nil || !bytes.Equal(f.Bytes(), []byte{0, 0, 0, 7, 8, 0, 0, 0, 0, 0}) {
		t.Errorf("%v, %v", f.Bytes(), err)
	}
	if err := f.Write(nil, 99); err != nil {
		t.Errorf("nothing to write: %v", err)
	}
	if err := f.f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Write([]byte{1}, 0); err == nil || !strings.Contains(err.Error(), "free some space in the folder of the job") {
		t.Errorf("what can't be written: %v", err)
	}
	f.f = nil
	if err := f.Close(); err != nil || f.Bytes() != nil {
		t.Errorf("%v after the end, %v", f.Bytes(), err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("a second end: %v", err)
	}
	if err := (*File)(nil).Close(); err != nil {
		t.Errorf("no file: %v", err)
	}
	if _, err := New(filepath.Join(dir, "none"), 10); err == nil || !strings.Contains(err.Error(), "free some space there") {
		t.Errorf("no folder: %v", err)
	}
}

// A file of nothing has nothing.
func TestNoBytes(t *testing.T) {
	f, err := New(t.TempDir(), 0)
	if err != nil || len(f.Bytes()) > 0 {
		t.Fatal(f, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
