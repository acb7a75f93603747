package read

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// assembled is a source made of parts, each of which knows how to read itself.
type assembled struct {
	meta     graph.Meta
	edges    func(ctx context.Context, yield func(graph.EdgeBatch) error) error
	features func(ctx context.Context, yield func(graph.FeatureBatch) error) error // nil: none
	labels   []int32
	splits   [][]graph.Mark
	notes    []string
	close    func() error // may be nil
}

var _ graph.Source = (*assembled)(nil)

func (s *assembled) Meta() graph.Meta       { return s.meta }
func (s *assembled) Labels() []int32        { return s.labels }
func (s *assembled) Splits() [][]graph.Mark { return s.splits }
func (s *assembled) IDs() graph.IDs         { return graph.IDs{} }
func (s *assembled) Notes() []string        { return s.notes }

func (s *assembled) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	return s.edges(ctx, yield)
}

func (s *assembled) Features(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	if s.features == nil {
		return nil
	}
	return s.features(ctx, yield)
}

func (s *assembled) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// edgeBatch is how many edges are yielded at a time, featureBatch how many values
// at least, if there are as many.
const (
	edgeBatch    = 1 << 16
	featureBatch = 1 << 19
)

// Bounds of the columns that features may have: a row of a dense batch lies in
// memory, and models have a weight for each column.
const (
	maxDenseFeatures  = 1 << 20
	maxSparseFeatures = 1 << 24
)
