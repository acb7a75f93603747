package peers

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// cut maps a file that is cut short afterwards.
func cut(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows")
	must(t, os.WriteFile(path, make([]byte, 1<<16), 0o600))
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, 1<<16, unix.PROT_READ, unix.MAP_SHARED)
	must(t, err)
	noted := mapped.Add(path, b)
	t.Cleanup(func() {
		noted.Remove()
		must(t, unix.Munmap(b))
	})
	must(t, os.Truncate(path, 0))
	return b
}

// An answer that can't be read while it is sent does not look like one of another version, which
// nobody asks for again.
func TestAnswerThatCanNotBeReadIsAskedForAgain(t *testing.T) {
	short := cut(t)
	inWorld(t, 2, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 2)
		var calls atomic.Int64
		w.serving(1, 7, 2, func(_ context.Context, _ int, _ peer.Query, reply func(...[]byte) error) error {
			if calls.Add(1) == 1 {
				return reply(short)
			}
			return reply([]byte("whole"))
		})
		got, err := asker.Ask(t.Context(), 1, rows(1), nil)
		must(t, err)
		if string(got) != "whole" || calls.Load() != 2 {
			t.Errorf("%q after %d calls", got, calls.Load())
		}
	})
}
