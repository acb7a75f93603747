//go:build cuda && emulator

package sample

import (
	"cmp"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/cora"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/sample"
)

type shard = graph.Shard

// An edge of a graph that a test writes down.
type edge struct {
	from, to uint32
	weight   float32
}

// cut makes shards of edges, in any order: one up to each of the ends, which ascend.
func cut(edges []edge, weighted bool, ends ...int) []*shard {
	edges = slices.Clone(edges)
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from)) })
	var shards []*shard
	first := 0
	for i, end := range ends {
		s := &shard{
			Number: i, Shards: len(ends), First: uint32(first), Vertices: end - first, Total: uint32(ends[len(ends)-1]), Indptr: []int64{0},
		}
		for v := first; v < end; v++ {
			for len(edges) > 0 && int(edges[0].to) == v {
				s.Indices = append(s.Indices, int32(edges[0].from))
				if weighted {
					s.Weights = append(s.Weights, edges[0].weight)
				}
				edges = edges[1:]
			}
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
		shards = append(shards, s)
		first = end
	}
	return shards
}

// wild is edges with all there is: hubs, vertices without edges in or out, some with
// an edge from themselves. None is there twice.
func wild(n, edges int, seed uint64) []edge {
	r := rand.New(rand.NewPCG(seed, 1))
	has := map[[2]uint32]bool{}
	var all []edge
	for range edges {
		from, to := uint32(r.IntN(n)), uint32(r.IntN(n))
		switch r.IntN(4) {
		case 0:
			to = uint32(r.IntN(3))
		case 1:
			if r.IntN(8) == 0 {
				to = from
			}
		}
		if to%7 == 5 || from%11 == 3 || has[[2]uint32{from, to}] {
			continue
		}
		has[[2]uint32{from, to}] = true
		all = append(all, edge{from, to, 0.25 + r.Float32()})
	}
	return all
}

// built makes shards of a source, as a node does.
func built(t *testing.T, src graph.Source) []*shard {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shards")
	m, err := build.Run(t.Context(), src, build.Options{Dir: dir, Shards: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var all []*shard
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

func coraShards(t *testing.T) []*shard {
	t.Helper()
	path, err := cora.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	src, err := read.Open(t.Context(), path, read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	return built(t, src)
}

func rmat(t *testing.T, vertices uint32, edges uint64) []*shard {
	t.Helper()
	src, err := generate.New(generate.Options{Kind: "rmat", Vertices: vertices, Edges: edges, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return built(t, src)
}

func topology(t *testing.T, shards []*shard) *sample.Topology {
	t.Helper()
	to, err := sample.NewTopology(shards)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// every is each so many-th vertex of n, from the last.
func every(n, step int) []uint32 {
	var all []uint32
	for v := n - 1; v >= 0; v -= step {
		all = append(all, uint32(v))
	}
	return all
}

func opened(t *testing.T) *driver.Device {
	t.Helper()
	d, err := driver.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
