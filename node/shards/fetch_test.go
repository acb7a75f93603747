package shards

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// long is a shard of five pieces and a bit.
const long = 5*pieceBytes + 77

func TestShardsMoveWhereTheyAreWanted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(1000, long, 1, pieceBytes)
		for _, id := range []string{"a", "b", "c"} {
			w.run(id)
		}
		w.place("b", "c")
		w.until("b and c hold all", w.settled("b", "c"))
		w.whole("b")
		w.whole("c")
		w.until("a has removed its files", func() bool { return len(w.files("a")) == 0 })
		w.do(plan.RemoveDataset{ID: dataset})
		w.until("b and c, too", func() bool {
			_, err := os.Stat(filepath.Join(w.folder("b"), dataset))
			return errors.Is(err, os.ErrNotExist) && len(w.files("c")) == 0
		})
	})
}

func TestFetchGoesOnAfterABrokenLink(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(long)
		w.run("a")
		w.run("b")
		var pieces atomic.Int64
		w.fault = func(context.Context, piece) error {
			if pieces.Add(1) == 4 {
				return errors.New("the link broke")
			}
			return nil
		}
		w.place("a", "b")
		w.until("b holds it", w.settled("a", "b"))
		w.whole("b")
		// Of what was in flight behind the broken piece, some may come twice.
		if got := w.sent("a"); got < long-pieceBytes || got > long+piecesInFlight*pieceBytes {
			t.Errorf("%d bytes for a shard of %d", got, long)
		}
		if pieces.Load() == 6 {
			t.Error("nothing broke")
		}
	})
}

// A node that is stopped in the middle goes on from what is on its disk, from
// another holder if need be.
func TestFetchGoesOnAfterARestart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(long)
		w.run("a")
		w.run("c")
		w.place("a", "c")
		w.until("two hold it", w.settled("a", "c"))
		before := w.sent("a", "c")

		w.mu.Lock()
		w.fault = func(ctx context.Context, p piece) error {
			if p.offset >= 3*pieceBytes {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		w.mu.Unlock()
		stop := w.run("b")
		w.place("a", "c", "b")
		w.until("three pieces are on disk", func() bool {
			info, err := os.Stat(filepath.Join(w.folder("b"), dataset, "0000.part"))
			return err == nil && info.Size() == 3*pieceBytes
		})
		stop()
		w.mu.Lock()
		w.fault, w.down["a"] = nil, true
		w.mu.Unlock()
		w.run("b")
		w.until("b holds it", w.settled("a", "c", "b"))
		w.whole("b")
		if got := w.sent("a", "c") - before; got != long {
			t.Errorf("%d bytes came for a shard of %d", got, long)
		}
	})
}

// What a peer sends is believed when its hash is right, and not before.
func TestLyingPeer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(long, 500)
		for _, id := range []string{"a", "c"} {
			w.run(id)
		}
		w.place("a", "c")
		w.until("two hold it", w.settled("a", "c"))
		w.mu.Lock()
		w.fault = func(_ context.Context, p piece) error {
			if p.from == "a" {
				p.bytes[len(p.bytes)/2] ^= 1
			}
			return nil
		}
		w.mu.Unlock()
		w.run("b")
		w.place("a", "c", "b")
		w.until("b holds it", w.settled("a", "c", "b"))
		w.whole("b")
	})
}

func TestOnlyLyingPeers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(500)
		w.run("a")
		w.fault = func(_ context.Context, p piece) error { p.bytes[0] ^= 1; return nil }
		w.run("b")
		w.place("a", "b")
		w.until("it says so", func() bool { return strings.Contains(strings.Join(w.keeper("b").Problems(), ""), "damaged") })
		if w.held > 0 || slices.Contains(w.files("b"), "0000.safetensors") {
			t.Errorf("%d reports; files %v", w.held, w.files("b"))
		}
		w.mu.Lock()
		w.fault = nil
		w.mu.Unlock()
		w.until("it comes in the end", w.settled("a", "b"))
		if p := w.keeper("b").Problems(); len(p) > 0 {
			t.Errorf("still: %q", p)
		}
	})
}

func TestDamagedPartsAreNoHindrance(t *testing.T) {
	for name, left := range map[string][]byte{
		"wrong bytes": bytes.Repeat([]byte{7}, pieceBytes+5),
		"too long":    make([]byte, long+100),
		"empty":       nil,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.bring(long)
				w.run("a")
				if err := os.MkdirAll(filepath.Join(w.folder("b"), dataset), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(w.folder("b"), dataset, "0000.part"), left, 0o600); err != nil {
					t.Fatal(err)
				}
				w.place("a", "b")
				w.run("b")
				w.until("b holds it", w.settled("a", "b"))
				w.whole("b")
				if got := w.files("b"); len(got) != 1 {
					t.Errorf("files %v", got)
				}
			})
		})
	}
}

// The node it comes from dies without a word: another is asked at once, not when
// the stream times out.
func TestSourceThatDies(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(long)
		w.run("a")
		w.run("c")
		w.place("a", "c")
		w.until("two hold it", w.settled("a", "c"))
		w.mu.Lock()
		w.fault = func(ctx context.Context, p piece) error {
			if p.from == "a" {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		w.mu.Unlock()
		w.run("b")
		w.place("a", "c", "b")
		<-time.After(time.Second)
		begin := time.Now()
		w.mu.Lock()
		w.down["a"] = true
		w.mu.Unlock()
		w.until("b holds it", w.settled("a", "c", "b"))
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestUnusableFolder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(500)
		w.run("a")
		if err := os.MkdirAll(filepath.Dir(w.folder("b")), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(w.folder("b"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		w.run("b")
		w.place("a", "b")
		w.until("it says where", func() bool {
			p := strings.Join(w.keeper("b").Problems(), "\n")
			return strings.Contains(p, "dataset g") && strings.Contains(p, w.folder("b"))
		})
		if err := os.Remove(w.folder("b")); err != nil {
			t.Fatal(err)
		}
		w.until("b holds it", w.settled("a", "b"))
		if p := w.keeper("b").Problems(); len(p) > 0 {
			t.Errorf("still: %q", p)
		}
	})
}

// While no node that holds a shard answers, the node says so and waits.
func TestNoSource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(500)
		w.run("a")
		w.down["a"] = true
		w.run("b")
		w.place("a", "b")
		w.until("it says so", func() bool {
			return strings.Contains(strings.Join(w.keeper("b").Problems(), ""), "no node that holds them answers")
		})
		w.mu.Lock()
		w.down["a"] = false
		w.mu.Unlock()
		w.until("b holds it", w.settled("a", "b"))
	})
}

// A node that has read an old plan must not act on it.
func TestOldPlanIsNotActedUpon(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(500)
		stop := w.run("a")
		stop()
		now := w.state
		w.mu.Lock()
		w.state = new(plan.State) // as after a start, before the log is read
		w.deaf = true
		w.mu.Unlock()
		w.run("a")
		<-time.After(10 * time.Second)
		w.mu.Lock()
		w.deaf = false
		w.mu.Unlock()
		<-time.After(10 * time.Second)
		if len(w.files("a")) != 1 {
			t.Fatal("a file was removed that a newer plan wants")
		}
		k := w.keeper("a")
		w.mu.Lock()
		w.state = now
		w.mu.Unlock()
		k.Adopt(now)
		w.do(plan.RemoveDataset{ID: dataset})
		w.until("it follows the new plan", func() bool { return len(w.files("a")) == 0 })
	})
}

// A lane's buffers serve all its pieces.
func TestNoAllocationPerPiece(t *testing.T) {
	l := &lane{}
	allocations := func(pieces uint64) float64 {
		job := &fetch{want: plan.Shard{ShardAbout: plan.ShardAbout{Bytes: pieces * pieceBytes}}, ctx: t.Context()}
		path := filepath.Join(t.TempDir(), "part")
		return testing.AllocsPerRun(1, func() {
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			p := newPart(f)
			if err := l.stream(job, p, silence{}); err != nil {
				t.Fatal(err)
			}
			_ = p.leave()
		})
	}
	few, many := allocations(4), allocations(20)
	if many-few > 8 {
		t.Errorf("%v allocations for 4 pieces, %v for 20", few, many)
	}
}

type silence struct{}

func (silence) Fetch(context.Context, string, []byte, []byte) error { return nil }
func (silence) Doubt(context.Context, string, string, int)          {}
func (silence) Serving(string) bool                                 { return true }

// A node with little memory serves fewer pieces at once.
func TestServesLeaveRoomForJobs(t *testing.T) {
	for memory, want := range map[uint64]int{0: maxServes, 1 << 20: 2, 256 << 20: 4, 64 << 30: maxServes} {
		if s := newServes(memory); cap(s.running) != want {
			t.Errorf("with %d bytes: %d at once, not %d", memory, cap(s.running), want)
		}
	}
}
