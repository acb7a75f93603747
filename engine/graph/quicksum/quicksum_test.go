package quicksum

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

func TestMark(t *testing.T) {
	digest, other := hex.EncodeToString(bytes.Repeat([]byte{7}, 32)), hex.EncodeToString(bytes.Repeat([]byte{8}, 32))
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("whole"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := Of(path, digest); ok {
		t.Error("a file has sums that nobody gave it")
	}
	var s, pieces Sums
	_, _ = s.Write([]byte("whole"))
	_, _ = pieces.Write([]byte("who"))
	_, _ = pieces.Write([]byte("le"))
	if s != pieces || s == (Sums{}) {
		t.Errorf("%v at once, %v in pieces", s, pieces)
	}
	if s.Mark(path, "no digest") {
		t.Error("it is marked with what is no digest")
	}
	if !s.Mark(path, digest) {
		t.Fatal("it can't be marked: has this disk no extended attributes?")
	}
	if got, ok := Of(path, digest); !ok || got != s {
		t.Errorf("%v, %v", got, ok)
	}
	if _, ok := Of(path, other); ok {
		t.Error("it passes for a file with another SHA-256")
	}
}

// FuzzSums reads any attribute.
func FuzzSums(f *testing.F) {
	digest := hex.EncodeToString(bytes.Repeat([]byte{7}, 32))
	whole := Sums{1, 2}.encode(digest)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, ok := parse(b, digest); ok && !bytes.Equal(s.encode(digest), b) {
			t.Errorf("%x is read as %+v", b, s)
		}
	})
}
