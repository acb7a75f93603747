package build

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// TestEachTypeIsBalanced cuts two rings of two types, whose best cut has one type in each half: every
// shard gets its share of both. All vertices together are balanced by either.
func TestEachTypeIsBalanced(t *testing.T) {
	const of, shards = 400, 4
	types := &graph.Types{
		Vertices: []graph.VertexType{
			{Name: "author", Vertices: of, Features: 1, Bare: true},
			{Name: "paper", Vertices: of, First: 1, Features: 1, Bare: true},
		},
		Relations: []graph.Relation{{Source: "author", Name: "knows", Target: "author", Edges: of}, {Source: "paper", Name: "cites", Target: "paper", Edges: of}},
	}
	m := &memory{batch: 100, meta: graph.Meta{Format: "test", Vertices: 2 * of, Edges: 2 * of, Weighted: true, Features: 2, Types: types}}
	for v := range uint32(2 * of) {
		kind := v / of
		m.edges.Src, m.edges.Dst = append(m.edges.Src, v), append(m.edges.Dst, kind*of+(v+1)%of)
		m.edges.Weights = append(m.edges.Weights, float32(kind))
		m.rows = append(m.rows, []float32{float32(1 - kind), float32(kind)})
	}
	for _, partitioner := range []string{multilevel, stream} {
		dir := filepath.Join(t.TempDir(), "shards")
		if _, err := Run(t.Context(), m, Options{Dir: dir, Partitioner: partitioner, Shards: shards, Seed: 1}); err != nil {
			t.Fatal(err)
		}
		for i := range shards {
			s, err := graph.OpenShard(filepath.Join(dir, graph.ShardFile(i)))
			if err != nil {
				t.Fatal(err)
			}
			papers := 0
			for row := range s.Vertices {
				if v, err := strconv.Atoi(string(s.Originals.Append(nil, row))); err != nil {
					t.Fatal(err)
				} else if v >= of {
					papers++
				}
			}
			const most = 1.05 * of / shards
			if authors := s.Vertices - papers; float64(papers) > most || float64(authors) > most {
				t.Errorf("%s: shard %d has %d authors and %d papers of %d each", partitioner, i, authors, papers, of)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestAHubsEdgesAreBalanced cuts ten types of vertices with few edges and one vertex with very many,
// whose shard has to have few others. Types would leave it its share of each.
func TestAHubsEdgesAreBalanced(t *testing.T) {
	const of, leaves, shards = 512, 5000, 8
	r := rand.New(rand.NewPCG(3, 1))
	types := &graph.Types{}
	m := &memory{batch: 1000}
	add := func(name string, n int) (first uint32) {
		first = m.meta.Vertices
		types.Vertices = append(types.Vertices, graph.VertexType{Name: name, Vertices: uint64(n), First: len(types.Vertices), Features: 1, Bare: true})
		m.meta.Vertices += uint32(n)
		return first
	}
	relate := func(from, to int, ends [][2]uint32) {
		number := float32(len(types.Relations))
		types.Relations = append(types.Relations, graph.Relation{Source: types.Vertices[from].Name, Name: strconv.Itoa(len(types.Relations)), Target: types.Vertices[to].Name, Edges: uint64(len(ends))})
		for _, e := range ends {
			m.edges.Src, m.edges.Dst, m.edges.Weights = append(m.edges.Src, e[0]), append(m.edges.Dst, e[1]), append(m.edges.Weights, number)
		}
	}
	for i := range 10 {
		add(fmt.Sprint("t", i), of)
	}
	hub, leaf := add("hub", 1), add("leaf", leaves)
	for a := range 10 {
		for b := range 10 {
			if r.IntN(5) < 2 {
				var ends, back [][2]uint32
				for range 600 {
					u, v := uint32(a*of+r.IntN(of)), uint32(b*of+r.IntN(of))
					ends, back = append(ends, [2]uint32{u, v}), append(back, [2]uint32{v, u})
				}
				relate(a, b, ends)
				relate(b, a, back)
			}
		}
	}
	var ends, back [][2]uint32
	for i := range uint32(leaves) {
		ends, back = append(ends, [2]uint32{hub, leaf + i}), append(back, [2]uint32{leaf + i, hub})
	}
	relate(10, 11, ends)
	relate(11, 10, back)
	m.meta.Format, m.meta.Weighted, m.meta.Features, m.meta.Types, m.meta.Edges = "test", true, len(types.Vertices), types, uint64(len(m.edges.Src))
	for kind, v := range types.Vertices {
		for range v.Vertices {
			row := make([]float32, len(types.Vertices))
			row[kind] = 1
			m.rows = append(m.rows, row)
		}
	}
	for _, partitioner := range []string{multilevel, stream} {
		manifest, err := Run(t.Context(), m, Options{Dir: filepath.Join(t.TempDir(), "shards"), Partitioner: partitioner, Shards: shards, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: vertices %.3f, edges %.3f", partitioner, manifest.Balance, manifest.BalanceEdges)
		if manifest.BalanceEdges > 1.12 {
			t.Errorf("%s: a shard has %.2f times the edges of the average", partitioner, manifest.BalanceEdges)
		}
	}
}
