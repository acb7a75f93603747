package baseline

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// ring is a graph in shards, in which vertex v hears from v%61 others.
func ring(t testing.TB, n int, ends ...int) *sample.Topology {
	t.Helper()
	var shards []*graph.Shard
	first := 0
	for i, end := range ends {
		s := &graph.Shard{Number: i, Shards: len(ends), First: uint32(first), Vertices: end - first, Total: uint32(n), Indptr: []int64{0}}
		for v := first; v < end; v++ {
			from := len(s.Indices)
			for j := range v % 61 {
				s.Indices = append(s.Indices, int32((v*v+j*97)%n))
			}
			slices.Sort(s.Indices[from:])
			s.Indices = s.Indices[:from+len(slices.Compact(s.Indices[from:]))]
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
		shards = append(shards, s)
		first = end
	}
	topology, err := sample.NewTopology(shards)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

func roots(n int) []uint32 {
	var all []uint32
	for v := range n {
		all = append(all, uint32(v))
	}
	sample.Order(1, 1, all)
	return all
}

func TestFailuresAreSentences(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	topology := ring(t, 100, 100)
	if _, err := Ours(topology, Work{Fanouts: []int{1}, Roots: []uint32{3, 3}, Batch: 2, Threads: 2}); err == nil || !strings.Contains(err.Error(), "root 3 occurs twice") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(ctx, topology); err == nil {
		t.Error("built after the end")
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Build(t.Context(), topology); !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "there is no g++") {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("%v is left behind (%v)", left, err)
	}
}
