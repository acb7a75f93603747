package read

import (
	"context"
	"fmt"
)

// archives opens the raw files of the largest graphs: data.npz has edges and
// features, node-label.npz the labels.
func (g *ogb) archives(ctx context.Context) error {
	for _, name := range []string{"data.npz", "node-label.npz"} {
		if _, err := regular(g.raw(name)); err != nil {
			return fmt.Errorf("raw/%s is missing: %w", name, err)
		}
	}
	z, err := openArchive(g.raw("data.npz"))
	if err != nil {
		return err
	}
	n := &npz{archive: z, o: g.o, memory: g.memory}
	n.meta.Format = g.meta.Format
	n.assembled.close = z.close
	defer func() { g.assembled = n.assembled }()
	if err := n.ogb(ctx); err != nil {
		return err
	}
	labels, err := openArchive(g.raw("node-label.npz"))
	if err != nil {
		return err
	}
	defer labels.close()
	a, err := labels.array("node_label")
	if err != nil {
		return err
	}
	if a == nil {
		return fmt.Errorf("node-label.npz holds no node_label, but %s: copy the folder again", labels.listed())
	}
	n.labels, n.meta.Classes, err = readLabels(ctx, a, n.meta.Vertices, n.memory)
	return err
}

// ogb opens what data.npz holds.
func (n *npz) ogb(ctx context.Context) error {
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
		return fmt.Errorf("%s holds no num_nodes_list, but %s: copy the folder again", n.name, n.listed())
	case !n.has("edge_index"):
		return fmt.Errorf("%s holds no edge_index, but %s: copy the folder again", n.name, n.listed())
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
