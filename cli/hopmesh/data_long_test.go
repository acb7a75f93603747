//go:build long

package main

import (
	"testing"
	"time"
)

func TestImporterIsKilledEarlyAndLate(t *testing.T) {
	importerIsKilled(t, 50*time.Millisecond, 400*time.Millisecond, 1200*time.Millisecond)
}

// The importing node is killed with -9: the dataset ends whole on the others, or it was
// never there.
func TestImporterIsKilled(t *testing.T) {
	importerIsKilled(t, 400*time.Millisecond)
}
