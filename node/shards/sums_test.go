package shards

import (
	"crypto/sha256"
	"encoding/hex"
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
