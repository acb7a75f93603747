package build

import (
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
