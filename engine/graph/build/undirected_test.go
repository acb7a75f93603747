package build

import (
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// Each edge stands at both ends, once, whichever way and how often the source lists
// it; self-loops do not. What is stored at a vertex is its weight.
func TestUndirected(t *testing.T) {
	src := &memory{
		meta:   graph.Meta{Vertices: 4, Edges: 5},
		edges:  graph.EdgeBatch{Src: []uint32{0, 0, 1, 2, 2}, Dst: []uint32{1, 1, 0, 2, 1}},
		splits: [][]graph.Mark{{graph.Train, 0, 0, graph.Train}},
		batch:  2,
	}
	g, err := Undirected(t.Context(), src, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(g.Indptr, []int64{0, 1, 3, 4, 4}) || !slices.Equal(g.Indices, []uint32{1, 0, 2, 1}) {
		t.Errorf("the neighbours are %v, from %v", g.Indices, g.Indptr)
	}
	if !slices.Equal(g.Weights, []uint32{1, 1, 1, 1, 2, 0, 1, 1, 0, 1, 0, 1}) {
		t.Errorf("the weights are %v", g.Weights)
	}
}
