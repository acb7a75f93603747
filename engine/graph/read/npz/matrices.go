package npz

import (
	"context"
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
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
		m.height, m.width = uint64(shape.Int(b, 0)), uint64(shape.Int(b, 1))
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
	n.Info.Edges = m.indices.size
	n.Info.Weighted = w != nil
	edges := &matrixEdges{matrix: m, weights: w}
	n.ReadEdges = edges.read
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
	if m.height != uint64(n.Info.Vertices) {
		return m.indptr.wrong("the matrix has %d rows and there are %d vertices: give each vertex a row", m.height, n.Info.Vertices)
	}
	if m.width == 0 && m.indices.size == 0 {
		return nil
	}
	features, err := newSparseFeatures(m, values)
	if err != nil {
		return err
	}
	n.Info.Features, n.Info.Sparse, n.Info.NonZeros = int(m.width), true, m.indices.size
	n.ReadFeatures = features.read
	return nil
}

// A sparseMatrix is a matrix in compressed rows, as SciPy's csr_matrix has it.
type sparseMatrix struct {
	indptr  *array // [rows+1]
	indices *array // [entries]
	height  uint64
	width   uint64
}

// matrixRows reads the rows of a matrix in order.
type matrixRows struct {
	*sparseMatrix
	starts  *numbers
	columns *numbers
	row     uint64 // whose entries come next; entries of none before the first begins
	until   uint64 // where its entries end
	ptrs    []int64
	first   uint64 // the place of ptrs[0]
}

func (m *sparseMatrix) rows() (*matrixRows, error) {
	starts, err := m.indptr.numbers(0)
	if err != nil {
		return nil, err
	}
	columns, err := m.indices.numbers(0)
	if err != nil {
		starts.close()
		return nil, err
	}
	r := &matrixRows{sparseMatrix: m, starts: starts, columns: columns}
	if err := r.begin(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *matrixRows) close() {
	r.starts.close()
	r.columns.close()
}

// pointer returns indptr's i-th number. i never goes back further than what is held.
func (r *matrixRows) pointer(i uint64) (uint64, error) {
	if i >= r.first+uint64(len(r.ptrs)) {
		r.first = r.starts.at
		count := int(min(numbersChunk, r.starts.size-r.starts.at))
		b, err := r.starts.take(max(count, 1))
		if err != nil {
			return 0, err
		}
		r.ptrs = source.RoomFor(r.ptrs, count)
		r.starts.Ints(r.ptrs, b)
	}
	v := r.ptrs[i-r.first]
	if v < 0 {
		return math.MaxUint64, nil
	}
	return uint64(v), nil
}

func (r *matrixRows) begin() error {
	start, err := r.pointer(0)
	if err != nil {
		return err
	}
	if start != 0 {
		return r.indptr.wrong("it does not begin with 0: save the matrix again with SciPy's csr_matrix")
	}
	return r.widen()
}

// widen reads where the entries of the current row end.
func (r *matrixRows) widen() error {
	until, err := r.pointer(r.row + 1)
	if err != nil {
		return err
	}
	if until < r.until || until > r.indices.size {
		return r.indptr.wrong("row %d: its entries end at %d, between %d and %d is possible: save the matrix again with SciPy's csr_matrix", r.row, until, r.until, r.indices.size)
	}
	r.until = until
	if r.row+1 == r.height && until != r.indices.size {
		return r.indptr.wrong("it ends with %d, and there are %d entries: save the matrix again with SciPy's csr_matrix", until, r.indices.size)
	}
	return nil
}

// left is how many entries are still to come.
func (r *matrixRows) left() uint64 { return r.columns.size - r.columns.at }

// entries fills rows and columns with what comes next, of which there is enough.
func (r *matrixRows) entries(rows, columns []uint32) error {
	at := r.columns.at
	b, err := r.columns.take(len(columns))
	if err != nil {
		return err
	}
	bad := r.columns.Vertices(columns, b, uint32(r.width))
	for i := 0; i < len(rows); {
		for r.until == at+uint64(i) {
			r.row++
			if err := r.widen(); err != nil {
				return err
			}
		}
		for end := int(min(r.until-at, uint64(len(rows)))); i < end; i++ {
			if i == bad {
				return r.indices.wrong("row %d: there is no column %d, as there are %d: save the matrix again", r.row, r.columns.Int(b, i), r.width)
			}
			rows[i] = uint32(r.row)
		}
	}
	return nil
}

// end returns an error if anything is left, or if rows without entries are counted
// wrong.
func (r *matrixRows) end() error {
	for r.row+1 < r.height {
		r.row++
		if err := r.widen(); err != nil {
			return err
		}
	}
	if err := r.starts.end(); err != nil {
		return err
	}
	return r.columns.end()
}
