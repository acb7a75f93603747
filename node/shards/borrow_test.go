package shards

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// lent is a world whose shards are on a and b, and c borrows.
func lent(t *testing.T, f func(t *testing.T, w *world, dir string, borrow func(list ...int) error)) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(1000, long, 1, pieceBytes)
		for _, id := range []string{"a", "b", "c"} {
			w.run(id)
		}
		w.place("a", "b")
		w.until("a and b hold all", w.settled("a", "b"))
		dir := t.TempDir()
		f(t, w, dir, func(list ...int) error { return w.keeper("c").Borrow(t.Context(), dataset, list, dir) })
	})
}

func TestBorrow(t *testing.T) {
	lent(t, func(t *testing.T, w *world, dir string, borrow func(...int) error) {
		// A holder that breaks off, or has what is damaged, is one of two.
		var pieces atomic.Int64
		w.fault = func(_ context.Context, p piece) error {
			if p.from != "a" {
				return nil
			}
			if pieces.Add(1) == 2 {
				return errors.New("the link broke")
			}
			if len(p.bytes) == 1 { // all of shard 2
				p.bytes[0]++
			}
			return nil
		}
		if err := borrow(1, 3, 2); err != nil {
			t.Fatal(err)
		}
		for i, want := range w.plan().Shards {
			b, err := os.ReadFile(filepath.Join(dir, graph.ShardFile(i)))
			sum := sha256.Sum256(b)
			if i == 0 {
				if !errors.Is(err, os.ErrNotExist) {
					t.Errorf("a shard came that nobody asked for: %v", err)
				}
			} else if err != nil || hex.EncodeToString(sum[:]) != want.SHA256 {
				t.Errorf("shard %d: %d bytes, %v", i, len(b), err)
			}
		}
		if len(w.files("c")) != 0 || pieces.Load() < 4 {
			t.Errorf("c keeps %v after %d pieces", w.files("c"), pieces.Load())
		}
	})
}

func TestBorrowSaysWhatIsWrong(t *testing.T) {
	lent(t, func(t *testing.T, w *world, dir string, borrow func(...int) error) {
		says := func(err error, all ...string) {
			t.Helper()
			for _, s := range all {
				if err == nil || !strings.Contains(err.Error(), s) {
					t.Errorf("%v does not say %q", err, s)
				}
			}
		}
		w.mu.Lock()
		w.down["a"] = true
		w.mu.Unlock()
		w.fault = func(context.Context, piece) error { return errors.New("the link broke") }
		says(borrow(1), "fetch shard 1 of dataset g, which is not here: node na: does not answer; node nb: the link broke: start that node again, or import the dataset anew")
		w.mu.Lock()
		w.down["a"] = false
		w.mu.Unlock()
		says(borrow(1), "node na: the link broke; node nb: the link broke: ask once more")
		w.fault = nil
		says(borrow(4), "dataset g has no shard 4")
		says(borrow(-1), "has no shard -1")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		says(borrow(0), "keep shard 0 of dataset g for a while: this node's disk", "free some space")
		says(w.keeper("c").Borrow(t.Context(), "00000000000000bb", []int{0}, dir), "no longer in the mesh: import it again")
	})
}
