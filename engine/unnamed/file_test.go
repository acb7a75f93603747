package unnamed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/hopmesh/hopmesh/engine/mapped"
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

// A failing disk under a file is told from a fault of the program, and names the folder.
func TestAFileThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(dir, "it-*.tmp")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(3 << 14); err != nil {
		t.Fatal(err)
	}
	b, err := Map(f, 3<<14)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := Unmap(b); err != nil {
			t.Error(err)
		}
	}()
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	read := func() (x byte, err error) {
		defer mapped.End(mapped.Guard())
		defer mapped.Caught(&err)
		return b[2<<14], nil
	}
	if _, err := read(); !errors.Is(err, mapped.ErrUnreadable) || !strings.Contains(err.Error(), dir+":") {
		t.Error(err)
	}
}

func TestFull(t *testing.T) {
	if !Full(fmt.Errorf("write: %w", &os.PathError{Err: syscall.ENOSPC})) || Full(syscall.EIO) || Full(nil) {
		t.Error("it does not know a full disk")
	}
}
