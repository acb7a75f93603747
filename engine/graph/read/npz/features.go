package npz

import (
	"context"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/numpy"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// denseFeatures is an array with a row for each vertex.
type denseFeatures struct {
	values *array // [vertices, columns]
}

// newDenseFeatures returns an error if an array can't hold features.
func newDenseFeatures(a *array) (*denseFeatures, error) {
	if len(a.Shape) != 2 {
		return nil, a.wrong("it has the shape %s: give features a row for each vertex and a column for each feature", a.shaped())
	}
	if !a.rowByRow() {
		return nil, a.wrong("its columns, not its rows, lie one after another (Fortran order): save numpy.ascontiguousarray of it")
	}
	if a.Shape[1] > source.MaxDenseFeatures {
		return nil, a.wrong("there are %d columns and at most %d can be taken: save the features as a sparse matrix, or make them fewer", a.Shape[1], source.MaxDenseFeatures)
	}
	return &denseFeatures{a}, nil
}

func (f *denseFeatures) read(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	n, err := f.values.numbers(0)
	if err != nil {
		return err
	}
	defer n.close()
	rows, width := f.values.Shape[0], f.values.Shape[1]
	if width == 0 {
		return n.end()
	}
	batch := max(source.FeatureBatch/width, 1)
	var buf []float32
	for row := uint64(0); row < rows; row += batch {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		buf = source.RoomFor(buf, int(min(batch, rows-row)*width))
		bad, err := n.floats(buf)
		if err != nil {
			return err
		}
		if bad >= 0 {
			return notANumber(n.array, row+uint64(bad)/width, uint64(bad)%width, buf[bad])
		}
		if err := yield(graph.FeatureBatch{First: uint32(row), Dense: buf}); err != nil {
			return err
		}
	}
	return n.end()
}

func notANumber(a *array, row, column uint64, v float32) error {
	if math.IsNaN(float64(v)) {
		return a.wrong("row %d, column %d is NaN: fill in what is missing, for instance with numpy.nan_to_num", row, column)
	}
	return a.wrong("row %d, column %d is infinite as a float32: scale the feature, or clip it with numpy.clip", row, column)
}

// sparseFeatures are a matrix in compressed rows with a row for each vertex.
type sparseFeatures struct {
	matrix sparseMatrix
	values *array
}

func newSparseFeatures(m sparseMatrix, values *array) (*sparseFeatures, error) {
	if m.width > source.MaxSparseFeatures {
		return nil, values.wrong("there are %d columns and at most %d can be taken: make the features fewer", m.width, source.MaxSparseFeatures)
	}
	return &sparseFeatures{m, values}, nil
}

// read sorts the columns of a row where they are not. Two entries of one column
// are refused: whether they are to be added up is not for the reader to guess.
func (f *sparseFeatures) read(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	rows, err := f.matrix.rows()
	if err != nil {
		return err
	}
	defer rows.close()
	values, err := f.values.numbers(0)
	if err != nil {
		return err
	}
	defer values.close()
	var of []uint32
	b := graph.FeatureBatch{Indptr: []int64{0}}
	flush := func() error {
		if len(b.Indptr) == 1 {
			return nil
		}
		if err := f.sort(&b); err != nil {
			return err
		}
		if err := yield(b); err != nil {
			return err
		}
		b.First += uint32(len(b.Indptr) - 1)
		b.Indptr, b.Indices, b.Values = append(b.Indptr[:0], 0), b.Indices[:0], b.Values[:0]
		return nil
	}
	for rows.row = 0; ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// As much of the current row as there is room for.
		count := int(min(rows.until-rows.columns.at, source.FeatureBatch))
		was := len(b.Indices)
		b.Indices = append(b.Indices, make([]uint32, count)...)
		b.Values = append(b.Values, make([]float32, count)...)
		of = source.RoomFor(of, count)
		if count > 0 {
			if err := rows.entries(of, b.Indices[was:]); err != nil {
				return err
			}
			bad, err := values.floats(b.Values[was:])
			if err != nil {
				return err
			}
			if bad >= 0 {
				return notANumber(values.array, rows.row, uint64(b.Indices[was+bad]), b.Values[was+bad])
			}
		}
		if uint64(len(b.Indices))-uint64(b.Indptr[len(b.Indptr)-1]) > f.matrix.width {
			return f.matrix.indices.wrong("row %d has more entries than there are columns: call sum_duplicates() on the matrix before it is saved", rows.row)
		}
		if rows.until > rows.columns.at {
			continue
		}
		b.Indptr = append(b.Indptr, int64(len(b.Indices)))
		if len(b.Indices) >= source.FeatureBatch || len(b.Indptr) > source.FeatureBatch {
			if err := flush(); err != nil {
				return err
			}
		}
		if rows.row+1 == f.matrix.height {
			break
		}
		rows.row++
		if err := rows.widen(); err != nil {
			return err
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if err := rows.end(); err != nil {
		return err
	}
	return values.end()
}

func (f *sparseFeatures) sort(b *graph.FeatureBatch) error {
	for i, from := range b.Indptr[:len(b.Indptr)-1] {
		indices, values := b.Indices[from:b.Indptr[i+1]], b.Values[from:b.Indptr[i+1]]
		if !slices.IsSorted(indices) {
			numpy.SortRow(indices, values)
		}
		for j := 1; j < len(indices); j++ {
			if indices[j] == indices[j-1] {
				return f.matrix.indices.wrong("row %d has column %d twice: call sum_duplicates() on the matrix before it is saved", uint64(b.First)+uint64(i), indices[j])
			}
		}
	}
	return nil
}
