package read

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// matrices opens the layout of gnn-benchmark.
func (n *npz) matrices(ctx context.Context) error {
	if err := n.adjacency(ctx); err != nil {
		return err
	}
	if err := n.attributes(ctx); err != nil {
		return err
	}
	return n.rest(ctx, "labels")
}

// matrix opens the rows and columns of a sparse matrix.
func (n *npz) matrix(ctx context.Context, prefix string) (sparseMatrix, error) {
	var m sparseMatrix
	var err error
	if m.indptr, err = n.need(prefix+"_indptr", true); err != nil {
		return m, err
	}
	if m.indices, err = n.need(prefix+"_indices", true); err != nil {
		return m, err
	}
	shape, err := n.need(prefix+"_shape", true)
	if err != nil {
		return m, err
	}
	if !shape.is(2) {
		return m, shape.wrong("it holds %s numbers and two were expected, how many rows and how many columns: save the matrix's shape", shape.shaped())
	}
	if err := shape.each(ctx, func(_ uint64, _ int, b []byte) error {
		m.height, m.width = uint64(shape.int(b, 0)), uint64(shape.int(b, 1))
		return nil
	}); err != nil {
		return m, err
	}
	if m.height > graph.MaxVertices || m.width > graph.MaxVertices {
		return m, shape.wrong("a matrix of %d rows and %d columns can't be taken, only one of up to %d: save the matrix's shape, or cut the graph down", int64(m.height), int64(m.width), graph.MaxVertices)
	}
	if m.indptr.size != m.height+1 {
		return m, m.indptr.wrong("it has %d numbers, and a matrix of %d rows needs %d: save the matrix again with SciPy's csr_matrix", m.indptr.size, m.height, m.height+1)
	}
	return m, nil
}

func (n *npz) adjacency(ctx context.Context) error {
	m, err := n.matrix(ctx, "adj")
	if err != nil {
		return err
	}
	if m.height != m.width {
		return m.indptr.wrong("the matrix has %d rows and %d columns: a graph's has as many of both", m.height, m.width)
	}
	if err := n.count(m.indptr, m.height); err != nil {
		return err
	}
	var w *array
	if n.has("adj_data") {
		if w, err = n.need("adj_data", false); err != nil {
			return err
		}
		if w.size != m.indices.size {
			return w.wrong("it has %d numbers and adj_indices has %d: save the matrix again with SciPy's csr_matrix", w.size, m.indices.size)
		}
		if w, err = weighted(ctx, w, n.o); err != nil {
			return err
		}
	}
	n.meta.Edges = m.indices.size
	n.meta.Weighted = w != nil
	edges := &matrixEdges{matrix: m, weights: w}
	n.assembled.edges = edges.read
	return nil
}

func (n *npz) attributes(ctx context.Context) error {
	x, err := n.array("attr_matrix")
	if err != nil {
		return err
	}
	sparse := n.has("attr_indptr") || n.has("attr_indices")
	switch {
	case x != nil && sparse:
		return fmt.Errorf("%s holds features both as attr_matrix and as attr_indptr and attr_indices: save it with one of them", n.name)
	case x != nil:
		return n.dense(x)
	case !sparse:
		return nil
	}
	m, err := n.matrix(ctx, "attr")
	if err != nil {
		return err
	}
	values, err := n.need("attr_data", false)
	if err != nil {
		return err
	}
	if values.size != m.indices.size {
		return values.wrong("it has %d numbers and attr_indices has %d: save the matrix again with SciPy's csr_matrix", values.size, m.indices.size)
	}
	if m.height != uint64(n.meta.Vertices) {
		return m.indptr.wrong("the matrix has %d rows and there are %d vertices: give each vertex a row", m.height, n.meta.Vertices)
	}
	if m.width == 0 && m.indices.size == 0 {
		return nil
	}
	features, err := newSparseFeatures(m, values)
	if err != nil {
		return err
	}
	n.meta.Features, n.meta.Sparse, n.meta.NonZeros = int(m.width), true, m.indices.size
	n.assembled.features = features.read
	return nil
}
