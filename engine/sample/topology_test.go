package sample

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
)

func TestTopologyIsTheShards(t *testing.T) {
	const n = 500
	edges := wild(n, 4000, 2)
	a := newNaive(n, edges, true, Options{})
	for _, ends := range [][]int{{n}, {0, n}, {0, 0, 1, 2, 3, 3, 4, 250, 251, n - 1, n, n}} {
		shards := cut(edges, true, ends...)
		slices.Reverse(shards)
		to := topology(t, shards)
		if to.Vertices() != n || to.Edges() != int64(len(edges)) {
			t.Errorf("%d vertices and %d edges", to.Vertices(), to.Edges())
		}
		for v := range n {
			sources, weights := to.Row(v)
			if len(sources) != to.Degree(v) || len(sources) != len(a.in[uint32(v)]) {
				t.Fatalf("vertex %d has %d sources, degree %d", v, len(sources), to.Degree(v))
			}
			for i, e := range a.in[uint32(v)] {
				if sources[i] != int32(e.from) || weights[i] != e.weight {
					t.Fatalf("vertex %d: %v %v", v, sources, weights)
				}
			}
		}
	}
}

// TestManyUnevenShards finds each vertex among as many shards as there may be.
func TestManyUnevenShards(t *testing.T) {
	var ends []int
	end := 0
	for i := range graph.MaxShards {
		end += i * i % 37 * (i % 3)
		if i == 700 {
			end += 100_000
		}
		ends = append(ends, end)
	}
	to := topology(t, cut(nil, false, ends...))
	for v := range uint32(end) {
		if p := to.parts[to.of(v)]; v < p.first || v >= p.end {
			t.Fatalf("vertex %d was looked for from %d to %d", v, p.first, p.end)
		}
	}
}

func TestIncompleteShardsAreRefused(t *testing.T) {
	make4 := func() []*graph.Shard { return cut(wild(100, 300, 1), false, 20, 50, 50, 100) }
	for want, change := range map[string]func([]*graph.Shard) []*graph.Shard{
		"there are no shards":     func([]*graph.Shard) []*graph.Shard { return nil },
		"the vertices 0 to 19":    func(s []*graph.Shard) []*graph.Shard { return s[1:] },
		"the vertices 20 to 49":   func(s []*graph.Shard) []*graph.Shard { return slices.Delete(s, 1, 2) },
		"the vertices 50 to 99":   func(s []*graph.Shard) []*graph.Shard { return s[:3] },
		"begins at vertex 20, wh": func(s []*graph.Shard) []*graph.Shard { return append(s, s[1]) },
		"not of 100":              func(s []*graph.Shard) []*graph.Shard { s[2].Total = 101; return s },
	} {
		if _, err := NewTopology(change(make4())); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and %q was expected", err, want)
		}
	}
}

// TestShardsFromFiles reads what an import has written.
func TestShardsFromFiles(t *testing.T) {
	src, err := generate.New(generate.Options{Kind: "sbm", Vertices: 3000, Edges: 30000, Features: 4, Classes: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	o := build.Options{Dir: dir, Shards: 8}
	m, err := build.Run(t.Context(), src, o)
	if err != nil {
		t.Fatal(err)
	}
	var shards []*graph.Shard
	for i := range m.Shards {
		s, err := graph.OpenShard(filepath.Join(dir, graph.ShardFile(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		shards = append(shards, s)
	}
	to := topology(t, shards)
	var b Batch
	if err := New(to, Options{Fanouts: []int{5, 5}}).Sample(t.Context(), &b, 0, 0, []uint32{0, 2999, 1500}); err != nil {
		t.Fatal(err)
	}
	for i := range b.Blocks {
		for r := range b.Blocks[i].Rows {
			sources, _ := to.Row(int(b.Blocks[i].Vertices[r]))
			for e := b.Blocks[i].Indptr[r]; e < b.Blocks[i].Indptr[r+1]; e++ {
				if _, ok := slices.BinarySearch(sources, int32(b.Blocks[i].Vertices[b.Blocks[i].Indices[e]])); !ok {
					t.Fatal("an edge that the graph does not have")
				}
			}
		}
	}
}

func TestDegrees(t *testing.T) {
	const n = 3 * grain / 2
	edges := wild(n, 50000, 6)
	edges = append(edges, edge{4, 5, -3}, edge{4, 12, -1}) // vertices whose degrees are not above 0
	for _, weighted := range []bool{false, true} {
		for _, loops := range []bool{false, true} {
			a := newNaive(n, edges, weighted, Options{Form: Form{SelfLoops: loops}})
			inverse := topology(t, cut(edges, weighted, 100, n)).Inverse(loops)
			for v, got := range inverse {
				want := 0.0
				if d := a.degree(uint32(v)); d > 0 {
					want = 1 / math.Sqrt(d)
				}
				if !(math.Abs(float64(got)-want) <= 1e-7*want) { // nor NaN
					t.Fatalf("weighted %v, loops %v: vertex %d has %v and not %v", weighted, loops, v, got, want)
				}
			}
		}
	}
}
