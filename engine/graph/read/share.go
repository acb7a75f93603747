package read

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/tabular"
)

// Sharing lets each node read its own parts of a source.
type Sharing = source.Sharing

// ShareOf returns how the nodes can read their parts of a source, if they can.
func ShareOf(src graph.Source, self string) (Sharing, bool) { return tabular.ShareOf(src, self) }

// OpenShare opens the parts of this node.
func OpenShare(ctx context.Context, s Sharing, self string, memory uint64) (graph.Source, error) {
	own, err := s.Of(self)
	if err != nil {
		return nil, err
	}
	for _, p := range own {
		if _, err := partFormat(ctx, p.Path, s.Format); err != nil {
			return nil, err
		}
	}
	return tabular.OpenShare(ctx, s, own, memory)
}
