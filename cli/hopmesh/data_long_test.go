//go:build long

package main

import (
	"testing"
	"time"
)

func TestImporterIsKilledEarlyAndLate(t *testing.T) {
	importerIsKilled(t, 50*time.Millisecond, 400*time.Millisecond, 1200*time.Millisecond)
}
