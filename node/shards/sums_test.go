package shards

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/quicksum"
)

// A file is recognised by its sums, and one with a flipped bit is not.
func TestSums(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 300_000)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	sum := sha256.Sum256(b)
	digest := hex.EncodeToString(sum[:])
	path := filepath.Join(t.TempDir(), "shard")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := recognise(t.Context(), path, digest); ok {
		t.Error("a file without sums is recognised")
	}
	var s quicksum.Sums
	was, err := sumUp(t.Context(), path, &s)
	if err != nil {
		t.Fatal(err)
	}
	now := mark(path, digest, s, was)
	as, ok := recognise(t.Context(), path, digest)
	if !ok || as != now {
		t.Fatal("it is not recognised: has this disk no extended attributes?")
	}
	if _, ok := recognise(t.Context(), path, digest[1:]+"0"); ok {
		t.Error("it is recognised as another shard")
	}
	for i := range 100 {
		flipped := slices.Clone(b)
		flipped[random.IntN(len(b))] ^= 1 << random.IntN(8)
		f, err := os.OpenFile(path, os.O_WRONLY, 0) // the attribute stays
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(flipped); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if _, ok := recognise(t.Context(), path, digest); ok {
			t.Fatalf("flip %d is not found", i)
		}
	}
	t.Log("100 of 100 flipped bits are found by the sums")
}

// opened is a file as it was mapped.
type opened struct {
	info    fs.FileInfo
	content []byte
	streams int
}

func (o *opened) Info() fs.FileInfo { return o.info }

func (o *opened) Stream(_ context.Context, each func([]byte)) error {
	o.streams++
	each(o.content[:100])
	each(o.content[100:])
	return nil
}

func openedAt(t *testing.T, path string) *opened {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return &opened{info: info, content: b}
}

// A mapped file is recognised by what is mapped, once, and only if that is the file at its path.
func TestRecogniseWhatIsMapped(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(5000)
		w.run("a")
		w.run("b")
		w.place("b", "a")
		w.until("both hold it", w.settled("b", "a"))
		k := w.keeper("b")
		recognised := func(o *opened) bool {
			k.mu.Lock()
			clear(k.checks.whole) // as after a start
			k.mu.Unlock()
			k.Recognise(t.Context(), dataset, 0, o)
			return k.Intact(dataset, 0, o.info)
		}
		whole := openedAt(t, w.file("b", 0))
		if !recognised(whole) {
			t.Error("a whole file is not recognised")
		}
		if k.Recognise(t.Context(), dataset, 0, whole); whole.streams != 1 {
			t.Errorf("it is read %d times", whole.streams)
		}
		other := openedAt(t, w.file("a", 0))
		if recognised(other) || other.streams > 0 {
			t.Error("another file is recognised as the one at the path")
		}
		damaged := openedAt(t, w.file("b", 0))
		damaged.content[4321] ^= 4
		if recognised(damaged) {
			t.Error("a flipped bit is not found")
		}
		grown := openedAt(t, w.file("b", 0))
		if err := os.WriteFile(w.file("b", 0), append(slices.Clone(grown.content), 7), 0o600); err != nil {
			t.Fatal(err)
		}
		if recognised(grown) {
			t.Error("a file that has grown since it was mapped is recognised")
		}
		if err := os.Truncate(w.file("b", 0), int64(len(grown.content))); err != nil {
			t.Fatal(err)
		}
		k.Suspect(dataset, 0)
		if recognised(whole) {
			t.Error("the sums of a file suffice that could not be read")
		}
	})
}
