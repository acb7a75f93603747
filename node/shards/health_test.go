package shards

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// A whole file is never taken for damaged, whatever is done to it while it is read; one that is
// damaged is found when that ends.
func TestReadWhileWritten(t *testing.T) {
	content := []byte(strings.Repeat("whole", 1000))
	sum := sha256.Sum256(content)
	want := hex.EncodeToString(sum[:])
	for name, c := range map[string]struct {
		now     string // what the file holds at first
		between func(path string, n int) error
		err     error // nil: it is whole
	}{
		"its mode changes": {now: string(content), between: func(path string, n int) error { return os.Chmod(path, os.FileMode(0o600+n%2)) }},
		"it is touched": {now: string(content), between: func(path string, n int) error {
			return os.Chtimes(path, time.Time{}, time.Unix(int64(n), 0))
		}},
		"it is written once": {now: "other", between: func(path string, n int) error {
			if n > 1 {
				return nil
			}
			return os.WriteFile(path, content, 0o600)
		}},
		"it is always being written": {now: "other", err: errWritten, between: func(path string, n int) error {
			return os.Chtimes(path, time.Time{}, time.Unix(int64(n), 0))
		}},
		"it is damaged": {now: "other", err: errDiffers, between: func(string, int) error { return nil }},
	} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "shard")
			if err := os.WriteFile(path, []byte(c.now), 0o600); err != nil {
				t.Fatal(err)
			}
			n := 0
			_, _, err := readWhole(t.Context(), path, want, func(int) bool {
				n++
				if err := c.between(path, n); err != nil {
					t.Error(err)
				}
				return true
			})
			if !errors.Is(err, c.err) || isDamage(err) != errors.Is(err, errDiffers) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// What users read of a file that a disk can't read names the cause.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir() // a folder can be opened, and not read
	_, _, err := readWhole(t.Context(), dir, "", nil)
	if !isDamage(err) {
		t.Fatal(err)
	}
	if why := whyOf(dir, plan.Shard{}, err); !strings.Contains(why, "can't be read: read ") || !strings.Contains(why, "is a directory") {
		t.Error(why)
	}
}
