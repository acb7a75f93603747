package unnamed

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// A file has no name from the beginning, and its mapping outlives it.
func TestFilesHaveNoNames(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(dir, "it-*.tmp")
	if err != nil {
		t.Fatal(err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) > 0 {
		t.Errorf("the folder has %v, %v", all, err)
	}
	want := bytes.Repeat([]byte("page"), 3000)
	if _, err := f.Write(want); err != nil {
		t.Fatal(err)
	}
	if _, err := Map(f, len(want)+1); err == nil {
		t.Error("more is mapped than the file has")
	}
	b, err := Map(f, len(want))
	if err != nil || f.Close() != nil || !bytes.Equal(b, want) {
		t.Errorf("%d bytes are mapped: %v", len(b), err)
	}
	if err := Unmap(b); err != nil {
		t.Error(err)
	}
	if _, err := Create(dir+"/none", "it-*.tmp"); err == nil {
		t.Error("a file is made in a folder that is not there")
	}
}

func TestFull(t *testing.T) {
	if !Full(fmt.Errorf("write: %w", &os.PathError{Err: syscall.ENOSPC})) || Full(syscall.EIO) || Full(nil) {
		t.Error("it does not know a full disk")
	}
}
