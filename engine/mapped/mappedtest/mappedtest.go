// Package mappedtest makes mapped files that can't be read, for tests.
package mappedtest

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/mapped"
)

// Cut maps a file of so many bytes, and then cuts it down to left bytes. Reading beyond them fails.
func Cut(t testing.TB, bytes int, left int64) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(path, make([]byte, bytes), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, bytes, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	noted := mapped.Add(path, b)
	t.Cleanup(func() {
		noted.Remove()
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	})
	if err := os.Truncate(path, left); err != nil {
		t.Fatal(err)
	}
	return b
}
