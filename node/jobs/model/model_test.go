package model

import (
	"strings"
	"testing"
)

// Shards that the disk has no room for are not asked for.
func TestShardsThatFindNoRoom(t *testing.T) {
	m := New(Config{Name: "n2"})
	if err := m.fits(t.TempDir(), "g", 3, 1<<20); err != nil {
		t.Error(err)
	}
	if err := m.fits(t.TempDir(), "g", 3, 1<<62); err == nil || !strings.Contains(err.Error(), "node n2 lacks 3 shards of dataset g") || !strings.Contains(err.Error(), "free some space") {
		t.Error(err)
	}
}
