package npz

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// OpenOGB reads the archives of the Open Graph Benchmark's largest graphs: one with
// edges and features, one with labels.
func OpenOGB(ctx context.Context, data, labels string, o source.Options, memory *source.Memory) (*source.Assembled, error) {
	z, err := openArchive(ctx, data)
	if err != nil {
		return nil, err
	}
	n := &npz{archive: z, o: o, memory: memory}
	n.Closer = z.close
	err = n.benchmark(ctx)
	if err == nil {
		err = n.benchmarkLabels(ctx, labels)
	}
	if err != nil {
		return nil, errors.Join(err, z.close())
	}
	return &n.Assembled, nil
}

func (n *npz) benchmarkLabels(ctx context.Context, path string) error {
	z, err := openArchive(ctx, path)
	if err != nil {
		return err
	}
	defer z.close()
	a, err := z.array("node_label")
	if err != nil {
		return err
	}
	if a == nil {
		return fmt.Errorf("node-label.npz holds no node_label, but %s: copy the folder again", z.arrays())
	}
	err = n.readLabels(ctx, a)
	return err
}

// benchmark opens what data.npz holds.
func (n *npz) benchmark(ctx context.Context) error {
	count, err := n.array("num_nodes_list")
	if err != nil {
		return err
	}
	if count == nil {
		if count, err = n.array("num_nodes"); err != nil {
			return err
		}
	}
	x, err := n.array("node_feat")
	switch {
	case err != nil:
		return err
	case count == nil:
		return fmt.Errorf("%s holds no num_nodes_list, but %s: copy the folder again", n.name, n.arrays())
	case !n.has("edge_index"):
		return fmt.Errorf("%s holds no edge_index, but %s: copy the folder again", n.name, n.arrays())
	}
	if err := n.claimed(ctx, count, x != nil); err != nil {
		return err
	}
	if err := n.listedEdges(ctx); err != nil {
		return err
	}
	if err := n.dense(x); err != nil {
		return err
	}
	n.used = append(n.used, "num_edges_list")
	n.noteUnused()
	return nil
}
