// Package npz reads graphs from archives of NumPy's arrays, in three layouts: that of
// shchur/gnn-benchmark, where edges and features are sparse matrices, that in which
// users of PyTorch Geometric save edge_index, x, y and masks, and that of the largest
// graphs of the Open Graph Benchmark.
//
// An array is read from its archive as it is needed. What a header claims is compared
// with how large the archive is before memory is taken.
package npz

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/given"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// Open reads an archive in the layout of shchur/gnn-benchmark or of PyTorch
// Geometric.
func Open(ctx context.Context, path string, o source.Options) (graph.Source, error) {
	z, err := openArchive(ctx, path)
	if err != nil {
		return nil, err
	}
	s, err := newNPZ(ctx, z, o)
	if err != nil {
		z.close()
		return nil, err
	}
	return s, nil
}

func newNPZ(ctx context.Context, z *archive, o source.Options) (graph.Source, error) {
	n := &npz{archive: z, o: o, memory: &source.Memory{Limit: o.Memory}}
	n.Info.Format = "npz"
	n.Closer = z.close
	matrix, list := z.has("adj_indptr", "adj_indices"), z.has("edge_index")
	split, err := n.split()
	if err != nil {
		return nil, err
	}
	switch {
	case matrix && list:
		err = fmt.Errorf("%s holds edges both as edge_index and as adj_indptr and adj_indices: save it with one of them", z.name)
	case matrix:
		err = n.matrices(ctx)
	case list:
		err = n.lists(ctx)
	default:
		err = fmt.Errorf("%s holds neither edge_index nor adj_indptr and adj_indices, but %s: save the edges as edge_index, an array of two rows with each edge's source and target", z.name, z.arrays())
	}
	if err != nil {
		return nil, err
	}
	return n.divided(ctx, split)
}

// split finds the arrays that split the edges.
func (n *npz) split() (split []given.Pairs, err error) {
	for _, key := range n.keys {
		place, is := given.PlaceOf(key)
		if !is {
			continue
		}
		a, err := n.pairs(key)
		if err != nil {
			return nil, err
		}
		split = append(split, given.Pairs{Place: place, Name: a.name, Read: func(ctx context.Context, yield func(graph.EdgeBatch) error) error {
			return (&listedEdges{index: a, vertices: n.Info.Vertices}).read(ctx, yield)
		}})
	}
	return split, nil
}

// divided returns the graph with the split that the archive has of its edges, if it has one.
func (n *npz) divided(ctx context.Context, split []given.Pairs) (graph.Source, error) {
	if len(split) == 0 {
		return &n.Assembled, nil
	}
	return given.Of(ctx, &n.Assembled, split, n.o)
}

func (z *archive) arrays() string {
	if len(z.keys) == 0 {
		return "no array"
	}
	return source.Listed(z.keys)
}

// npz is an archive that is being opened.
type npz struct {
	*archive
	source.Assembled
	o      source.Options
	memory *source.Memory
	used   []string
}

// array returns an array or nil.
func (n *npz) array(key string) (*array, error) {
	n.used = append(n.used, key)
	return n.archive.array(key)
}

// need returns an array of integers or numbers in one dimension.
func (n *npz) need(key string, integers bool) (*array, error) {
	a, err := n.array(key)
	switch {
	case err != nil:
		return nil, err
	case a == nil:
		return nil, fmt.Errorf("%s holds no %s, but %s: save it again with all arrays of the matrix", n.name, key, n.arrays())
	case len(a.Shape) != 1 || integers && (a.Float() || a.DType.Kind == 'b'):
		what := "numbers"
		if integers {
			what = "integers"
		}
		return nil, a.wrong("it has the shape %s and the type %s: save %s in one dimension", a.shaped(), a.DType, what)
	}
	return a, nil
}

// count sets the number of vertices.
func (n *npz) count(a *array, v uint64) error {
	if v == 0 {
		return a.wrong("there are no vertices: check what was saved")
	}
	if v > graph.MaxVertices {
		return a.wrong("there are %d vertices, and at most %d can be taken: cut the graph down", v, graph.MaxVertices)
	}
	n.Info.Vertices = uint32(v)
	return nil
}

// rest reads what both layouts have: labels, and the splits as ids or as masks.
func (n *npz) rest(ctx context.Context, labels string) error {
	a, err := n.array(labels)
	if err != nil {
		return err
	}
	if a != nil {
		if err := n.readLabels(ctx, a); err != nil {
			return err
		}
	}
	m := &source.Marking{Vertices: n.Info.Vertices, Memory: n.memory}
	for mark := graph.Train; mark <= graph.Test; mark++ {
		ids, err := n.array(source.PartNames[mark] + "_idx")
		if err != nil {
			return err
		}
		masked, err := n.array(source.PartNames[mark] + "_mask")
		switch {
		case err != nil:
			return err
		case ids != nil && masked != nil:
			return fmt.Errorf("%s holds both %s and %s: save one of them", n.name, ids.key, masked.key)
		case ids != nil:
			err = indices(ctx, m, ids, mark)
		case masked != nil:
			err = mask(ctx, m, masked, mark)
		}
		if err != nil {
			return err
		}
	}
	n.Marks = m.Splits
	n.noteUnused()
	return nil
}

// noteUnused notes which arrays were not read.
func (n *npz) noteUnused() {
	switch unused := n.unused(n.used); len(unused) {
	case 0:
	case 1:
		n.note("%s: the array %s was not used.", n.name, unused[0])
	default:
		n.note("%s: the arrays %s were not used.", n.name, source.Listed(unused))
	}
}

func (n *npz) note(format string, args ...any) {
	n.Remarks = append(n.Remarks, fmt.Sprintf(format, args...))
}

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

// dense sets the features, if there are any.
func (n *npz) dense(x *array) error {
	if x == nil {
		return nil
	}
	features, err := newDenseFeatures(x)
	if err != nil {
		return err
	}
	if x.Shape[0] != uint64(n.Info.Vertices) {
		return x.wrong("it has %d rows and there are %d vertices: give each vertex a row", x.Shape[0], n.Info.Vertices)
	}
	n.Info.Features = int(x.Shape[1])
	if n.Info.Features > 0 {
		n.ReadFeatures = features.read
	}
	return nil
}

// listedVertices finds how many vertices there are: from num_nodes, or from the rows
// of x, y or a mask, or else from the largest id of the edges.
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
		if len(a.Shape) == 0 {
			return a.wrong("it is a single number: give it a row for each vertex")
		}
		return n.count(a, a.Shape[0])
	}
	return n.largestID(ctx)
}

// claimed sets the number of vertices from an array. If no array has a row for each
// vertex, the number must be in proportion to the file, as memory is taken for them.
func (n *npz) claimed(ctx context.Context, count *array, proven bool) error {
	if count.size != 1 || count.Float() || count.DType.Kind == 'b' {
		return count.wrong("it is %s of type %s, and one integer was expected: save the number of vertices", count.shaped(), count.DType)
	}
	var v int64
	if err := count.each(ctx, func(_ uint64, _ int, b []byte) error {
		v = count.Int(b, 0)
		return nil
	}); err != nil {
		return err
	}
	const free, perByte = 1 << 20, 64
	if v < 0 || !proven && !n.has("y") && v > free+perByte*n.size {
		return count.wrong("it says that there are %d vertices, which a file of %d bytes can't hold: check it, or add x or y", v, n.size)
	}
	return n.count(count, uint64(v))
}

func (n *npz) edgeIndex() (*array, error) { return n.pairs("edge_index") }

// pairs returns an array of two rows: sources and targets.
func (n *npz) pairs(key string) (*array, error) {
	a, err := n.array(key)
	switch {
	case err != nil:
		return nil, err
	case len(a.Shape) != 2 || a.Shape[0] != 2:
		what := ""
		if len(a.Shape) == 2 && a.Shape[1] == 2 {
			what = ", such as its transpose " + key + ".T"
		}
		return nil, a.wrong("it has the shape %s: save two rows, each edge's source and each edge's target%s", a.shaped(), what)
	case a.Float() || a.DType.Kind == 'b':
		return nil, a.wrong("it has the type %s: save it as integers, with astype('int64')", a.DType)
	}
	return a, nil
}

// largestID counts the vertices by the largest id of the edges.
func (n *npz) largestID(ctx context.Context) error {
	a, err := n.edgeIndex()
	if err != nil {
		return err
	}
	progress := source.NewProgress(n.o.Report, "counting vertices", a.size, "ids")
	var largest uint32
	ids := make([]uint32, numbersChunk)
	err = a.each(ctx, func(first uint64, count int, b []byte) error {
		if bad := a.Vertices(ids[:count], b, graph.MaxVertices); bad >= 0 {
			return a.wrong("there is not a vertex %d: number the vertices 0, 1, 2 and so on, to at most %d", a.Int(b, bad), graph.MaxVertices-1)
		}
		for _, id := range ids[:count] {
			largest = max(largest, id)
		}
		progress.At(first + uint64(count))
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
	n.Info.Edges = index.Shape[1]
	w, err := n.array("edge_weight")
	if err != nil {
		return err
	}
	rows, err := n.edgeFeatures()
	if err != nil {
		return err
	}
	attr := (*array)(nil)
	if rows == nil || rows.key != "edge_attr" {
		attr, err = n.array("edge_attr")
	}
	if err != nil {
		return err
	}
	if attr != nil && (len(attr.Shape) > 1 && attr.size != attr.Shape[0] || w != nil) {
		n.note("%s: edge_attr was not used, as edges have a weight only unless {dataset.edge_features} is given.", n.name)
		attr = nil
	}
	if w == nil {
		w = attr
	}
	if w != nil && (len(w.Shape) == 0 || w.Shape[0] != n.Info.Edges || w.size != n.Info.Edges) {
		return w.wrong("it has the shape %s and there are %d edges: give each edge one weight", w.shaped(), n.Info.Edges)
	}
	given := w
	if w, err = weighted(ctx, w, n.o); err != nil {
		return err
	}
	if given != nil && w == nil {
		n.note("%s: each weight in %s is 1, so that the edges were taken without weights.", n.name, given.key)
	}
	n.Info.Weighted = w != nil
	edges := &listedEdges{index: index, weights: w, features: features{rows, n.Info.EdgeFeatures}, vertices: n.Info.Vertices}
	n.ReadEdges = edges.read
	return nil
}

// edgeFeatures returns the features of edges, if they are asked for.
func (n *npz) edgeFeatures() (*array, error) {
	if len(n.o.EdgeFeatures) == 0 {
		return nil, nil
	}
	rows, err := n.array("edge_feat")
	if err == nil && rows == nil {
		rows, err = n.array("edge_attr")
	}
	if err != nil {
		return nil, err
	}
	if rows == nil {
		return nil, fmt.Errorf("%s holds neither edge_feat nor edge_attr, but %s: leave {dataset.edge_features} out", n.name, n.arrays())
	}
	columns := uint64(1)
	if len(rows.Shape) == 2 {
		columns = rows.Shape[1]
	}
	switch {
	case len(rows.Shape) == 0 || len(rows.Shape) > 2 || rows.Shape[0] != n.Info.Edges || columns == 0:
		return nil, rows.wrong("it has the shape %s and there are %d edges: give each edge a row of features", rows.shaped(), n.Info.Edges)
	case columns > graph.MaxEdgeFeatures:
		return nil, rows.wrong("edges have %d features, and at most %d can be taken: save fewer", columns, graph.MaxEdgeFeatures)
	case rows.Fortran && columns > 1 && n.Info.Edges > 1:
		return nil, rows.wrong("it is in Fortran's order: save it with numpy.ascontiguousarray")
	}
	n.Info.EdgeFeatures = int(columns)
	return rows, nil
}
