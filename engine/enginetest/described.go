package enginetest

import (
	"context"
	"math/rand/v2"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// The planted graph with features of edges: each vertex is of one of four groups, which its features
// say, and hears three of each. Its label is the group of those whose edges are marked: without the
// marks all labels look alike.
const (
	describedVertices = 600
	groups            = 4
	heard             = 3 // vertices of each group
)

// DescribedColumns is how many features the edges of Described have: whether they are marked, and
// noise.
const DescribedColumns = 2

// Described returns that graph, with features of edges or without.
func Described(marked bool) graph.Source {
	s := &source.Assembled{Info: graph.Meta{
		Format: "test", Vertices: describedVertices, Edges: describedVertices * groups * heard, Features: groups, Classes: groups,
	}}
	if marked {
		s.Info.EdgeFeatures = DescribedColumns
	}
	s.Marks = [][]graph.Mark{make([]graph.Mark, describedVertices)}
	draws := rand.New(rand.NewPCG(7, 8))
	var edges graph.EdgeBatch
	var features graph.FeatureBatch
	for v := range describedVertices {
		label := draws.IntN(groups)
		s.Classes = append(s.Classes, int32(label))
		s.Marks[0][v] = []graph.Mark{graph.Train, graph.Train, graph.Validation, graph.Test}[draws.IntN(4)]
		row := make([]float32, groups)
		row[v%groups] = 1
		features.Dense = append(features.Dense, row...)
		for group := range groups {
			for k := range heard {
				mark, first := float32(-1), draws.IntN(describedVertices/groups/heard)
				if group == label {
					mark = 1
				}
				edges.Src, edges.Dst = append(edges.Src, uint32((first*heard+k)*groups+group)), append(edges.Dst, uint32(v))
				if marked {
					edges.Rows = append(edges.Rows, mark, draws.Float32())
				}
			}
		}
	}
	s.ReadEdges = func(_ context.Context, yield func(graph.EdgeBatch) error) error { return yield(edges) }
	s.ReadFeatures = func(_ context.Context, yield func(graph.FeatureBatch) error) error { return yield(features) }
	return s
}
