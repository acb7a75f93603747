package replica

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/mapped"
)

// A file that can't be read ends the questions, and not the process.
func TestAskingReadsAFileThatIsCutShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edges")
	if err := os.WriteFile(path, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, 1<<16, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	in := mapped.Add(path, b)
	defer func() {
		in.Remove()
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	}()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	all, sum := newAsking(t.Context()), 0
	all.Go(func(context.Context) error {
		for _, x := range b {
			sum += int(x)
		}
		return nil
	})
	if err := all.Wait(); !errors.Is(err, mapped.ErrUnreadable) {
		t.Errorf("%v, after a sum of %d", err, sum)
	}
}
