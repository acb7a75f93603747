package read

import (
	"errors"
	"fmt"
	"slices"
)

// rowsInMemory is a sparse matrix that was read from a pickle.
type rowsInMemory struct {
	indptr  []int64
	indices []uint32
	values  []float32
	width   int
}

var errNoMatrix = errors.New("its sparse matrix is not whole: take the file from kimiyoung/planetoid")

// part finds an array in the matrix's state.
func (m *pyMatrix) part(key string) (*pyArray, error) {
	a, ok := m.state.get(key).(*pyArray)
	if !ok || len(a.shape) != 1 {
		return nil, errNoMatrix
	}
	return a, nil
}

// get finds the value of a key that is a string.
func (d *pyDict) get(key string) any {
	if d == nil || len(d.items)%2 != 0 {
		return nil
	}
	for i := 0; i < len(d.items); i += 2 {
		if k, ok := word(d.items[i]); ok && k == key {
			return d.items[i+1]
		}
	}
	return nil
}

// rows takes the matrix out of what the pickle held.
func (m *pyMatrix) rows() (*rowsInMemory, error) {
	shape, ok := m.state.get("_shape").(*pyTuple)
	if !ok {
		shape, ok = m.state.get("shape").(*pyTuple)
	}
	if !ok || len(shape.items) != 2 {
		return nil, errNoMatrix
	}
	height, ok := shape.items[0].(int64)
	width, ok2 := shape.items[1].(int64)
	if !ok || !ok2 || width < 0 || width > maxSparseFeatures {
		return nil, errNoMatrix
	}
	indptr, err := m.part("indptr")
	if err != nil {
		return nil, err
	}
	indices, err := m.part("indices")
	if err != nil {
		return nil, err
	}
	data, err := m.part("data")
	if err != nil {
		return nil, err
	}
	entries := indices.shape[0]
	if height < 0 || indptr.shape[0] != uint64(height)+1 || data.shape[0] < entries || indptr.float() || indices.float() {
		return nil, errNoMatrix
	}
	out := &rowsInMemory{indptr: make([]int64, height+1), indices: make([]uint32, entries), values: make([]float32, entries), width: int(width)}
	indptr.ints(out.indptr, indptr.raw)
	for i, end := range out.indptr {
		if end < 0 || end > int64(entries) || i == 0 && end != 0 || i > 0 && end < out.indptr[i-1] {
			return nil, errNoMatrix
		}
	}
	if out.indptr[height] != int64(entries) {
		return nil, errNoMatrix
	}
	if bad := indices.vertices(out.indices, indices.raw, uint32(width)); bad >= 0 {
		return nil, errNoMatrix
	}
	if bad := data.floats(out.values, data.raw); bad >= 0 {
		return nil, fmt.Errorf("entry %d of its sparse matrix is %v as a float32: take the file from kimiyoung/planetoid", bad, out.values[bad])
	}
	for i, from := range out.indptr[:height] {
		row, values := out.indices[from:out.indptr[i+1]], out.values[from:out.indptr[i+1]]
		if !slices.IsSorted(row) {
			sortRow(row, values)
		}
		for j := 1; j < len(row); j++ {
			if row[j] == row[j-1] {
				return nil, fmt.Errorf("row %d has column %d twice: call sum_duplicates() on the matrix before it is saved", i, row[j])
			}
		}
	}
	return out, nil
}
