package build

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/partition"
)

// Undirected reads a graph into memory in the form that the multilevel partitioner gets,
// so that other partitioners can be compared with it. Temporary files go to the scratch
// folder.
func Undirected(ctx context.Context, src graph.Source, scratch string) (*partition.Graph, error) {
	o, err := Options{Dir: scratch, Scratch: scratch, Partitioner: multilevel}.settle(src)
	if err != nil {
		return nil, err
	}
	p, _, err := newPlan(src, o)
	if err != nil {
		return nil, err
	}
	b := newBuilder(src, o, p)
	if b.spool, err = b.scratch(); err != nil {
		return nil, err
	}
	defer b.spool.close()
	h, err := b.spread(ctx)
	if err != nil {
		return nil, err
	}
	to, err := b.scratch()
	if err != nil {
		return nil, err
	}
	defer to.close()
	g, err := b.sortHalves(ctx, h, to)
	if err != nil {
		return nil, err
	}
	return g.whole(ctx)
}
