package train

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/cora"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/graph/read"
)

// cut cuts a source into shards in a folder of the test.
func cut(t testing.TB, src graph.Source, shards int) []*graph.Shard {
	t.Helper()
	return cutBy(t, src, shards, "")
}

// cutBy is cut by one of the partitioners.
func cutBy(t testing.TB, src graph.Source, shards int, partitioner string) []*graph.Shard {
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

func fromFile(t testing.TB, path string, shards int) []*graph.Shard {
	t.Helper()
	src, err := read.Open(t.Context(), path, read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	return cut(t, src, shards)
}

func coraShards(t testing.TB) []*graph.Shard {
	t.Helper()
	path, err := cora.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return fromFile(t, path, 4)
}

// communities is a small graph with dense features, of which there are a few parts
// of grain vertices each.
func communities(t testing.TB, vertices int) []*graph.Shard {
	t.Helper()
	src, err := generate.New(generate.Options{
		Kind: "sbm", Vertices: uint32(vertices), Edges: uint64(6 * vertices), Features: 20, Classes: 4, Communities: 8, Inside: 0.8, Homophily: 0.8, Seed: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	return cut(t, src, 5)
}

func mustRun(t testing.TB, r Recipe, shards []*graph.Shard, o Options) (Result, []Epoch) {
	t.Helper()
	var all []Epoch
	before := o.Report
	o.Report = func(e Epoch) {
		all = append(all, e)
		if before != nil {
			before(e)
		}
	}
	result, err := Run(t.Context(), r, shards, o)
	if err != nil {
		t.Fatal(err)
	}
	return result, all
}

// hashes are the weights' of all epochs.
func hashes(all []Epoch) string {
	s := ""
	for _, e := range all {
		s += fmt.Sprintf("%d:%s\n", e.Epoch, e.Hash)
	}
	return s
}
