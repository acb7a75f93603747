package npz

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// OpenNodes opens the vertices of one type: x, y and masks as PyTorch Geometric's users save
// them, or num_nodes alone. held is the memory that is kept.
func OpenNodes(ctx context.Context, path string, o source.Options) (src graph.Source, held uint64, err error) {
	z, err := openArchive(ctx, path)
	if err != nil {
		return nil, 0, err
	}
	n := &npz{archive: z, o: o, memory: &source.Memory{Limit: o.Memory}}
	n.Closer = z.close
	if err := n.nodes(ctx); err != nil {
		z.close()
		return nil, 0, err
	}
	return &n.Assembled, n.memory.Held(), nil
}

func (n *npz) nodes(ctx context.Context) error {
	if !n.has("num_nodes") && !n.has("x") && !n.has("y") && !n.has("train_mask") && !n.has("val_mask") && !n.has("test_mask") {
		return fmt.Errorf("%s holds neither num_nodes nor x, y or a mask, but %s: save one of them, so that the vertices can be counted", n.name, n.arrays())
	}
	x, err := n.array("x")
	if err != nil {
		return err
	}
	if err := n.listedVertices(ctx, x); err != nil {
		return err
	}
	if err := n.dense(x); err != nil {
		return err
	}
	return n.rest(ctx, "y")
}

// OpenLinks opens edge_index, whose ids are all below vertices. Weights are not read.
func OpenLinks(ctx context.Context, path string, vertices uint32, o source.Options) (*source.Assembled, error) {
	z, err := openArchive(ctx, path)
	if err != nil {
		return nil, err
	}
	n := &npz{archive: z, o: o, memory: &source.Memory{Limit: o.Memory}}
	n.Closer, n.Info.Vertices = z.close, vertices
	if !n.has("edge_index") {
		err = fmt.Errorf("%s holds no edge_index, but %s: save the edges as edge_index, an array of two rows with each edge's source and target", n.name, n.arrays())
	} else {
		var index *array
		if index, err = n.edgeIndex(); err == nil {
			n.Info.Edges = index.Shape[1]
			n.ReadEdges = (&listedEdges{index: index, vertices: vertices}).read
			n.noteUnused()
		}
	}
	if err != nil {
		z.close()
		return nil, err
	}
	return &n.Assembled, nil
}
