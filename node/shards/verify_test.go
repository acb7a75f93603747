package shards

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/damage"
)

// heard records the damage that a keeper reports. Its methods may be called from any goroutine.
type heard struct {
	mu              sync.Mutex
	found, repaired []string
}

func (h *heard) Found(_ damage.Kind, key, what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.found = append(h.found, key+": "+what)
}

func (h *heard) Repaired(_ damage.Kind, key, _ string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repaired = append(h.repaired, key)
}

// all is what was named and what was repaired up to now.
func (h *heard) all() (found, repaired []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.found), slices.Clone(h.repaired)
}

func (h *heard) Clear(damage.Kind, string) {}

// Each bit that flips in a shard is found, the leader knows at once, and the shard is fetched
// anew.
func TestConfirmFindsFlippedBits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(5000, 6000)
		reported := new(heard)
		w.damage = reported
		w.run("a")
		w.run("b")
		w.place("b", "a")
		w.until("both hold all", w.settled("b", "a"))
		random, k := rand.New(rand.NewPCG(1, 2)), w.keeper("b")
		const places = 100
		found := 0
		for i := range places {
			shard := i % 2
			if err := k.Confirm(t.Context(), dataset, shard, nil); err != nil || !k.Intact(dataset, shard, nil) {
				t.Fatal(err)
			}
			path := w.file("b", shard)
			opened, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[random.IntN(len(b))] ^= 1 << random.IntN(8)
			<-time.After(time.Second)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if k.Intact(dataset, shard, opened) {
				t.Fatal("a file that was written counts as verified")
			}
			err = k.Confirm(t.Context(), dataset, shard, opened)
			u, lost := errors.AsType[*Unusable](err)
			// The keeper may already have fetched it anew.
			if !lost || u.Shard != shard || !u.Elsewhere || !strings.Contains(u.Why, "SHA-256") && !strings.Contains(u.Why, "replaced meanwhile") {
				t.Fatalf("%v", err)
			}
			found++
			w.until("it is here again", func() bool {
				here, _ := k.Restored(dataset, shard)
				return here && (w.settled("b", "a")() || w.settled("a", "b")())
			})
			if k.Intact(dataset, shard, opened) {
				t.Fatal("a file that took the place of another counts as that")
			}
		}
		w.whole("b")
		<-time.After(restEvery)
		if found, repaired := reported.all(); len(found) == 0 || len(repaired) == 0 || !strings.Contains(found[0], "of dataset g can't be used (its file is damaged") {
			t.Errorf("named: %q, repaired: %q", found, repaired)
		}
		t.Logf("%d of %d flipped bits were found, and their shards fetched anew", found, places)
	})
}

// What is gone or cut off is named so; without another copy that is said, and what to do.
func TestConfirmWithoutACopy(t *testing.T) {
	for why, harm := range map[string]func(path string) error{
		whyGone: os.Remove, whyTruncated: func(path string) error { return os.Truncate(path, 7) },
	} {
		inWorld(t, func(t *testing.T, w *world) {
			w.bring(500)
			reported := new(heard)
			w.damage = reported
			w.run("a")
			w.until("it is held", w.settled("a"))
			k := w.keeper("a")
			if err := harm(w.file("a", 0)); err != nil {
				t.Fatal(err)
			}
			err := k.Confirm(t.Context(), dataset, 0, nil)
			if u, lost := errors.AsType[*Unusable](err); !lost || u.Elsewhere || u.Why != why {
				t.Errorf("%s: %v", why, err)
			}
			if here, hope := k.Restored(dataset, 0); here || hope {
				t.Error("there is hope")
			}
			<-time.After(restEvery)
			if found, _ := reported.all(); len(found) != 1 || !strings.Contains(found[0], "no other node has a copy: remove the dataset and import it again") {
				t.Errorf("%q", found)
			}
		})
	}
}

// A file that looks unchanged is found by reading it now and then, while no job runs.
func TestScrubbing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(5000)
		w.run("a")
		w.run("b")
		w.place("b", "a")
		w.until("both hold all", w.settled("b", "a"))
		k := w.keeper("b")
		if err := k.Confirm(t.Context(), dataset, 0, nil); err != nil {
			t.Fatal(err)
		}
		path := w.file("b", 0)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[77] ^= 1
		if err := errors.Join(os.WriteFile(path, b, 0o600), os.Chtimes(path, time.Time{}, info.ModTime())); err != nil {
			t.Fatal(err)
		}
		<-time.After(scrubAfter + time.Minute)
		w.until("it was found", func() bool {
			sum, _, _, err := hashFile(context.Background(), path, nil)
			return err == nil && sum == w.plan().Shards[0].SHA256
		})
	})
}

func BenchmarkIntact(b *testing.B) {
	dir := b.TempDir()
	path := dir + "/f"
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		stampAt(path)
	}
}
