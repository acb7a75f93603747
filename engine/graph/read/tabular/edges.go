package tabular

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// placeEdgeFeatures finds the columns of the features of edges: those that are asked for, or all
// columns beside the ends and the weight. A weight that is asked for is a feature and no weight.
func placeEdgeFeatures(name string, names, asked []string, p placed) (found []int, err error) {
	taken := func(i int) bool {
		return i == p.id[0] || i == p.id[1] || slices.Contains(p.value, i)
	}
	switch {
	case len(asked) == 0:
		return nil, nil
	case source.AllEdgeFeatures(asked):
		for i := range names {
			if !taken(i) && names[i] != "" && names[i] != pandasIndex { // pandas numbers rows
				found = append(found, i)
			}
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s has no columns beside the ends of edges and their weight, and {dataset.edge_features} asks for all: leave it out", name)
		}
	default:
		for _, want := range asked {
			i := column(names, want)
			if i < 0 || taken(i) || slices.Contains(found, i) {
				return nil, fmt.Errorf("{dataset.edge_features} asks for the column %s, and %s has %s, of which it may name each once and not the ends of edges: name others", source.Printable(want), name, source.Listed(names))
			}
			found = append(found, i)
		}
	}
	if len(found) > graph.MaxEdgeFeatures {
		return nil, fmt.Errorf("%s has %d columns of features of edges, and at most %d can be taken: name fewer in {dataset.edge_features}", name, len(found), graph.MaxEdgeFeatures)
	}
	return found, nil
}

// edgeBatch returns edges with what a batch of rows has of them. features holds the rows of
// features, if there are some beside weights.
func (t *tables) edgeBatch(b *rowBatch, src, dst []uint32, weights, features []float32) (graph.EdgeBatch, []float32, []float32) {
	batch := graph.EdgeBatch{Src: src, Dst: dst}
	switch columns := t.meta.EdgeFeatures; {
	case columns == 0 && t.meta.Weighted:
		batch.Weights = b.floats
	case columns > 0 && !t.meta.Weighted:
		batch.Rows = b.floats
	case columns > 0:
		weights, features = weights[:0], features[:0]
		for row := range slices.Chunk(b.floats, columns+1) {
			weights, features = append(weights, row[0]), append(features, row[1:]...)
		}
		batch.Weights, batch.Rows = weights, features
	}
	return batch, weights, features
}
