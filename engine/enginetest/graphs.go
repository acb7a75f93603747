// Package enginetest makes the graphs that the engine's tests share, cut into shards in
// folders of the test.
package enginetest

import (
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/cora"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/graph/read"
)

// Cut cuts a source into shards by a partitioner; "" is the default one.
func Cut(t testing.TB, src graph.Source, shards int, partitioner string) []*graph.Shard {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shards")
	m, err := build.Run(t.Context(), src, build.Options{Dir: dir, Shards: shards, Seed: 1, Partitioner: partitioner})
	if err != nil {
		t.Fatal(err)
	}
	var all []*graph.Shard
	for i := range m.Shards {
		s, err := graph.OpenShard(filepath.Join(dir, graph.ShardFile(i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		all = append(all, s)
	}
	return all
}

// FromFile cuts the graph in a file.
func FromFile(t testing.TB, path string, shards int) []*graph.Shard {
	t.Helper()
	src, err := read.Open(t.Context(), path, read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	return Cut(t, src, shards, "")
}

// Cora returns the graph of the demo, which has sparse features, in four shards.
func Cora(t testing.TB) []*graph.Shard {
	t.Helper()
	path, err := cora.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return FromFile(t, path, 4)
}

// Communities returns a graph with dense features and four classes, in five shards.
func Communities(t testing.TB, vertices int) []*graph.Shard {
	t.Helper()
	return generated(t, generate.Options{
		Kind: "sbm", Vertices: uint32(vertices), Edges: uint64(6 * vertices), Features: 20, Classes: 4, Communities: 8, Inside: 0.8, Homophily: 0.8, Seed: 3,
	}, 5)
}

// Tiny returns a graph for the reference device, which is slow.
func Tiny(t testing.TB, vertices, shards int) []*graph.Shard {
	t.Helper()
	return generated(t, tiny(vertices), shards)
}

func tiny(vertices int) generate.Options {
	return generate.Options{
		Kind: "sbm", Vertices: uint32(vertices), Edges: uint64(5 * vertices), Features: 6, Classes: 3, Communities: 6, Inside: 0.6, Homophily: 0.8, Seed: 5,
	}
}

// Bare returns a graph without features, with four classes, in five shards.
func Bare(t testing.TB, vertices int) []*graph.Shard {
	t.Helper()
	return generated(t, generate.Options{
		Kind: "sbm", Vertices: uint32(vertices), Edges: uint64(6 * vertices), Classes: 4, Communities: 8, Inside: 0.8, Homophily: 0.8, Seed: 3,
	}, 5)
}

func generated(t testing.TB, o generate.Options, shards int) []*graph.Shard {
	t.Helper()
	src, err := generate.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return Cut(t, src, shards, "")
}

// Uneven returns owners of so many shards: node 0 has most, and of three nodes or more one
// has none.
func Uneven(shards, nodes int) []int {
	owners := make([]int, shards)
	for i := range owners {
		switch {
		case i%2 == 1:
			owners[i] = nodes - 1
		case nodes > 3 && i == 2:
			owners[i] = 1
		case nodes > 4 && i == 4:
			owners[i] = 3
		}
	}
	return owners
}
