//go:build long

package main

import (
	"slices"
	"syscall"
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

// An owner is killed with -9: its shards are served by their replicas, copied once
// more, and nothing is lost; a damaged copy is found and replaced.
func TestDatasetOutlivesAnOwner(t *testing.T) {
	t.Parallel()
	nodes := meshOf(t, 3)
	var d shownDataset
	nodes[0].must(&d, "dataset", "import", "cora", coraFile, "--replicas", "2")
	checkCora(t, d, []string{"n1", "n2", "n3"}, 3)
	nodes[1].signal(syscall.SIGKILL)
	<-nodes[1].done
	until(t, "the others own all", func() bool {
		var now shownDataset
		nodes[2].must(&now, "dataset", "show", "cora")
		return !slices.ContainsFunc(now.Shards, func(s shownShard) bool {
			return s.Owner == "n2"
		})
	})
	var v verdict
	nodes[0].must(&v, "dataset", "verify", "cora")
	if !v.OK {
		t.Errorf("verified %+v", v)
	}
	damage(t, nodes[0].dir)
	if code := nodes[2].json(&v, "dataset", "verify", "cora"); code != 1 {
		t.Errorf("verify of a damaged copy ended with %d", code)
	}
	until(t, "the copy is whole again", func() bool { return nodes[2].json(&v, "dataset", "verify", "cora") == 0 })
}
