package generate

import (
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// The shares of a graph are the graph, however many there are.
func TestSharesAreTheGraph(t *testing.T) {
	for _, o := range []Options{
		{Kind: "rmat", Vertices: 3000, Edges: 100_001, Features: 40, Classes: 5, Seed: 3},
		{Kind: "sbm", Vertices: 5000, Edges: 70_000, Features: 30, Classes: 7, Seed: 4},
		{Kind: "sbm", Vertices: 50, Seed: 5},
	} {
		whole, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		edges, rows := all(t, whole)
		for _, of := range []int{1, 2, 3, 7} {
			var gotEdges [][2]uint32
			gotRows := map[uint32][]float32{}
			for share := range of {
				s, err := Share(o, share, of)
				if err != nil {
					t.Fatal(err)
				}
				e, r := all(t, s)
				gotEdges = append(gotEdges, e...)
				for v, row := range r {
					if gotRows[v] != nil {
						t.Fatalf("vertex %d is in two shares", v)
					}
					gotRows[v] = row
				}
			}
			slices.SortFunc(gotEdges, compareEdges)
			slices.SortFunc(edges, compareEdges)
			if !slices.Equal(gotEdges, edges) || len(gotRows) != len(rows) {
				t.Fatalf("%+v in %d shares: other edges", o, of)
			}
			for v, row := range rows {
				if !slices.Equal(gotRows[v], row) {
					t.Fatalf("%+v in %d shares: vertex %d has other features", o, of, v)
				}
			}
		}
	}
}

// Any node can generate the rows of any vertices, with the bits that its source has.
func TestFeaturesOfAnyVertices(t *testing.T) {
	for _, o := range []Options{
		{Kind: "rmat", Vertices: 3000, Edges: 1000, Features: 40, Classes: 5, Seed: 3},
		{Kind: "sbm", Vertices: 5001, Edges: 7000, Features: 30, Classes: 7, Seed: 4},
		{Kind: "sbm", Vertices: 3, Features: batchFloats, Seed: 4},
		{Kind: "sbm", Vertices: 50, Seed: 5},
	} {
		whole, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		_, rows := all(t, whole)
		share, err := Share(o, 1, 3)
		if err != nil {
			t.Fatal(err)
		}
		for every := range uint32(4) {
			wanted := func(v uint32) bool { return every > 0 && v%every == 0 }
			last, n := -1, 0
			err := share.(part).FeaturesOf(t.Context(), wanted, func(b graph.FeatureBatch) error {
				for i := range b.Vertices {
					v := b.Vertex(i)
					if int(v) <= last || !wanted(v) || !slices.Equal(b.Dense[i*o.Features:(i+1)*o.Features], rows[v]) {
						t.Fatalf("%+v: vertex %d after %d", o, v, last)
					}
					last = int(v)
					n++
				}
				return nil
			})
			want := 0
			for v := range o.Vertices {
				if o.Features > 0 && wanted(v) {
					want++
				}
			}
			if err != nil || n != want {
				t.Errorf("%+v, every %d: %d rows, want %d, %v", o, every, n, want, err)
			}
		}
	}
}

func compareEdges(a, b [2]uint32) int { return slices.Compare(a[:], b[:]) }

func all(t *testing.T, s graph.Source) (edges [][2]uint32, rows map[uint32][]float32) {
	t.Helper()
	err := s.Edges(t.Context(), func(b graph.EdgeBatch) error {
		for i := range b.Src {
			edges = append(edges, [2]uint32{b.Src[i], b.Dst[i]})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rows = map[uint32][]float32{}
	columns := s.Meta().Features
	err = s.Features(t.Context(), func(b graph.FeatureBatch) error {
		for i := 0; columns > 0 && i < len(b.Dense)/columns; i++ {
			rows[b.Vertex(i)] = slices.Clone(b.Dense[i*columns : (i+1)*columns])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return edges, rows
}
