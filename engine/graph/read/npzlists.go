package read

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// lists opens the layout of PyTorch Geometric's users.
func (n *npz) lists(ctx context.Context) error {
	x, err := n.array("x")
	if err != nil {
		return err
	}
	if err := n.listedVertices(ctx, x); err != nil {
		return err
	}
	if err := n.listedEdges(ctx); err != nil {
		return err
	}
	if err := n.dense(x); err != nil {
		return err
	}
	return n.rest(ctx, "y")
}

// dense takes features, if there are any.
func (n *npz) dense(x *array) error {
	if x == nil {
		return nil
	}
	features, err := newDenseFeatures(x)
	if err != nil {
		return err
	}
	if x.shape[0] != uint64(n.meta.Vertices) {
		return x.wrong("it has %d rows and there are %d vertices: give each vertex a row", x.shape[0], n.meta.Vertices)
	}
	n.meta.Features = int(x.shape[1])
	if n.meta.Features > 0 {
		n.assembled.features = features.read
	}
	return nil
}

// listedVertices finds out how many vertices there are: num_nodes says it, or the
// rows of x, y or a mask, or else the largest id of the edges.
func (n *npz) listedVertices(ctx context.Context, x *array) error {
	count, err := n.array("num_nodes")
	if err != nil {
		return err
	}
	if count != nil {
		return n.claimed(ctx, count, x != nil)
	}
	for _, key := range []string{"x", "y", "train_mask", "val_mask", "test_mask"} {
		a, err := n.array(key)
		if err != nil {
			return err
		}
		if a == nil {
			continue
		}
		if len(a.shape) == 0 {
			return a.wrong("it is a single number: give it a row for each vertex")
		}
		return n.count(a, a.shape[0])
	}
	return n.largestID(ctx)
}

// claimed takes the number of vertices that an array says. Where no array has a row
// for each, the number has to be in proportion to the file, as memory is taken for
// them.
func (n *npz) claimed(ctx context.Context, count *array, proven bool) error {
	if count.size != 1 || count.float() || count.dtype.kind == 'b' {
		return count.wrong("it is %s of type %s, and one integer was expected: save the number of vertices", count.shaped(), count.dtype)
	}
	var v int64
	if err := count.each(ctx, func(_ uint64, _ int, b []byte) error {
		v = count.int(b, 0)
		return nil
	}); err != nil {
		return err
	}
	const free, perByte = 1 << 20, 64
	if v < 0 || !proven && !n.has("y") && v > free+perByte*n.size {
		return count.wrong("it says that there are %d vertices, which a file of %d bytes can't tell of: check it, or add x or y", v, n.size)
	}
	return n.count(count, uint64(v))
}

func (n *npz) edgeIndex() (*array, error) {
	a, err := n.array("edge_index")
	switch {
	case err != nil:
		return nil, err
	case len(a.shape) != 2 || a.shape[0] != 2:
		what := ""
		if len(a.shape) == 2 && a.shape[1] == 2 {
			what = ", such as its transpose edge_index.T"
		}
		return nil, a.wrong("it has the shape %s: save two rows, each edge's source and each edge's target%s", a.shaped(), what)
	case a.float() || a.dtype.kind == 'b':
		return nil, a.wrong("it has the type %s: save it as integers, with astype('int64')", a.dtype)
	}
	return a, nil
}

// largestID counts vertices by the edges' ends.
func (n *npz) largestID(ctx context.Context) error {
	a, err := n.edgeIndex()
	if err != nil {
		return err
	}
	tell := newTeller(n.o, "counting vertices", a.size, "ids")
	var largest uint32
	ids := make([]uint32, numbersChunk)
	err = a.each(ctx, func(first uint64, count int, b []byte) error {
		if bad := a.vertices(ids[:count], b, graph.MaxVertices); bad >= 0 {
			return a.wrong("there is no vertex %d: number the vertices 0, 1, 2 and so on, to at most %d", a.int(b, bad), graph.MaxVertices-1)
		}
		for _, id := range ids[:count] {
			largest = max(largest, id)
		}
		tell.at(first + uint64(count))
		return nil
	})
	if err != nil {
		return err
	}
	if a.size == 0 {
		return a.wrong("there are no edges, and nothing says how many vertices there are: add num_nodes")
	}
	n.note("%s: the number of vertices, %d, was taken from the largest id in edge_index.", n.name, largest+1)
	return n.count(a, uint64(largest)+1)
}

func (n *npz) listedEdges(ctx context.Context) error {
	index, err := n.edgeIndex()
	if err != nil {
		return err
	}
	n.meta.Edges = index.shape[1]
	w, err := n.array("edge_weight")
	if err != nil {
		return err
	}
	attr, err := n.array("edge_attr")
	if err != nil {
		return err
	}
	if attr != nil && (len(attr.shape) > 1 && attr.size != attr.shape[0] || w != nil) {
		n.note("%s: edge_attr was not used, as edges have a weight only.", n.name)
		attr = nil
	}
	if w == nil {
		w = attr
	}
	if w != nil && (len(w.shape) == 0 || w.shape[0] != n.meta.Edges || w.size != n.meta.Edges) {
		return w.wrong("it has the shape %s and there are %d edges: give each edge one weight", w.shaped(), n.meta.Edges)
	}
	given := w
	if w, err = weighted(ctx, w, n.o); err != nil {
		return err
	}
	if given != nil && w == nil {
		n.note("%s: each weight in %s is 1, so that the edges were taken without weights.", n.name, given.key)
	}
	n.meta.Weighted = w != nil
	edges := &listedEdges{index: index, weights: w, vertices: n.meta.Vertices}
	n.assembled.edges = edges.read
	return nil
}
