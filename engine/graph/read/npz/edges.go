package npz

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// listedEdges are two rows of vertices: where each edge begins and where it ends.
type listedEdges struct {
	index    *array // [2, edges]
	weights  *array // [edges]; nil if all are 1
	features features
	vertices uint32
}

func (e *listedEdges) read(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	if e.index.Fortran && e.index.Shape[1] > 1 {
		return e.readPairs(ctx, yield)
	}
	edges := e.index.Shape[1]
	if edges == 0 {
		return nil
	}
	src, err := e.index.numbers(0)
	if err != nil {
		return err
	}
	defer src.close()
	dst, err := e.index.numbers(edges)
	if err != nil {
		return err
	}
	defer dst.close()
	w, err := openWeights(e.weights)
	if err != nil {
		return err
	}
	defer w.close()
	f, err := e.features.open()
	if err != nil {
		return err
	}
	defer f.close()
	var b graph.EdgeBatch
	most := uint64(e.atOnce())
	for at := uint64(0); at < edges; at += uint64(len(b.Src)) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		count := int(min(most, edges-at))
		b.Src, b.Dst = source.RoomFor(b.Src, count), source.RoomFor(b.Dst, count)
		if err := e.row(src, b.Src, 0, at); err != nil {
			return err
		}
		if err := e.row(dst, b.Dst, 1, at); err != nil {
			return err
		}
		if b.Weights, err = w.next(count); err != nil {
			return err
		}
		if b.Rows, err = f.next(count * e.features.columns); err != nil {
			return err
		}
		if err := yield(b); err != nil {
			return err
		}
	}
	if err := f.end(); err != nil {
		return err
	}
	if err := dst.end(); err != nil {
		return err
	}
	if err := whole(src.from, dst.from); err != nil {
		return e.index.explain(err)
	}
	return w.end()
}

// atOnce returns how many edges are yielded together: fewer, if they have many features.
func (e *listedEdges) atOnce() int {
	return max(1, min(source.EdgeBatch, source.FeatureBatch/max(1, e.features.columns)))
}

// row reads some of one of the two rows.
func (e *listedEdges) row(n *numbers, dst []uint32, row int, at uint64) error {
	b, err := n.take(len(dst))
	if err != nil {
		return err
	}
	if bad := n.Vertices(dst, b, e.vertices); bad >= 0 {
		return e.strange(row, at+uint64(bad), n.Int(b, bad))
	}
	return nil
}

func (e *listedEdges) strange(row int, edge uint64, id int64) error {
	return e.index.wrong("row %d, column %d: there is not a vertex %d, as there are %d vertices, numbered from 0: check num_nodes and the edges", row, edge, id, e.vertices)
}

// readPairs reads interleaved rows, as in the transpose of a list of pairs.
func (e *listedEdges) readPairs(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	pairs, err := e.index.numbers(0)
	if err != nil {
		return err
	}
	defer pairs.close()
	w, err := openWeights(e.weights)
	if err != nil {
		return err
	}
	defer w.close()
	f, err := e.features.open()
	if err != nil {
		return err
	}
	defer f.close()
	both := make([]uint32, 2*e.atOnce())
	var b graph.EdgeBatch
	for pairs.at < pairs.size {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		at := pairs.at
		both = both[:min(uint64(cap(both)), pairs.size-at)]
		raw, err := pairs.take(len(both))
		if err != nil {
			return err
		}
		if bad := pairs.Vertices(both, raw, e.vertices); bad >= 0 {
			return e.strange(bad%2, (at+uint64(bad))/2, pairs.Int(raw, bad))
		}
		count := len(both) / 2
		b.Src, b.Dst = source.RoomFor(b.Src, count), source.RoomFor(b.Dst, count)
		for i := range count {
			b.Src[i], b.Dst[i] = both[2*i], both[2*i+1]
		}
		if b.Weights, err = w.next(count); err != nil {
			return err
		}
		if b.Rows, err = f.next(count * e.features.columns); err != nil {
			return err
		}
		if err := yield(b); err != nil {
			return err
		}
	}
	if err := pairs.end(); err != nil {
		return err
	}
	if err := f.end(); err != nil {
		return err
	}
	return w.end()
}

// matrixEdges are the entries of a sparse matrix: row i and column j is an edge
// from i to j, as in SciPy's graphs and in PyG's from_scipy_sparse_matrix.
type matrixEdges struct {
	matrix  sparseMatrix
	weights *array // nil if all are 1
}

func (e *matrixEdges) read(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	rows, err := e.matrix.rows()
	if err != nil {
		return err
	}
	defer rows.close()
	w, err := openWeights(e.weights)
	if err != nil {
		return err
	}
	defer w.close()
	var b graph.EdgeBatch
	for rows.left() > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		count := int(min(source.EdgeBatch, rows.left()))
		b.Src, b.Dst = source.RoomFor(b.Src, count), source.RoomFor(b.Dst, count)
		if err := rows.entries(b.Src, b.Dst); err != nil {
			return err
		}
		if b.Weights, err = w.next(count); err != nil {
			return err
		}
		if err := yield(b); err != nil {
			return err
		}
	}
	if err := rows.end(); err != nil {
		return err
	}
	return w.end()
}

// features are those of edges.
type features struct {
	rows    *array // [edges, columns] or [edges]; nil: there are none
	columns int
}

func (f features) open() (*weights, error) {
	w, err := openWeights(f.rows)
	if w != nil {
		w.each = "finite features"
	}
	return w, err
}

// weights reads the weights of edges, or other numbers. Those of nil are nil.
type weights struct {
	*numbers
	buf  []float32
	each string // what an edge is to have
}

func openWeights(a *array) (*weights, error) {
	if a == nil {
		return nil, nil
	}
	n, err := a.numbers(0)
	if err != nil {
		return nil, err
	}
	return &weights{numbers: n, each: "a finite weight"}, nil
}

func (w *weights) next(count int) ([]float32, error) {
	if w == nil {
		return nil, nil
	}
	at := w.at
	w.buf = source.RoomFor(w.buf, count)
	bad, err := w.floats(w.buf)
	if err == nil && bad >= 0 {
		err = w.wrong("entry %d is %v as a float32: give each edge %s", at+uint64(bad), w.buf[bad], w.each)
	}
	return w.buf, err
}

func (w *weights) end() error {
	if w == nil {
		return nil
	}
	return w.numbers.end()
}

func (w *weights) close() {
	if w != nil {
		w.numbers.close()
	}
}

// weighted reads all weights before the graph is called weighted. It refuses those
// that are not finite, and returns nil if all are 1.
func weighted(ctx context.Context, a *array, o source.Options) (*array, error) {
	if a == nil {
		return nil, nil
	}
	w, err := openWeights(a)
	if err != nil {
		return nil, err
	}
	defer w.close()
	progress := source.NewProgress(o.Report, fmt.Sprintf("reading %s", a.name), a.size, "edges")
	ones := true
	for w.at < w.size {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		values, err := w.next(int(min(source.EdgeBatch, w.size-w.at)))
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			ones = ones && v == 1
		}
		progress.At(w.at)
	}
	if err := w.end(); err != nil {
		return nil, err
	}
	if ones {
		return nil, nil
	}
	return a, nil
}
