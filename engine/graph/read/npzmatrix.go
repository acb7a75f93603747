package read

import "math"

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

// pointer returns indptr's i-th number; i never goes back by more than what is
// held.
func (r *matrixRows) pointer(i uint64) (uint64, error) {
	if i >= r.first+uint64(len(r.ptrs)) {
		r.first = r.starts.at
		count := int(min(numbersChunk, r.starts.size-r.starts.at))
		b, err := r.starts.take(max(count, 1))
		if err != nil {
			return 0, err
		}
		r.ptrs = roomFor(r.ptrs, count)
		r.starts.ints(r.ptrs, b)
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
	bad := r.columns.vertices(columns, b, uint32(r.width))
	for i := 0; i < len(rows); {
		for r.until == at+uint64(i) {
			r.row++
			if err := r.widen(); err != nil {
				return err
			}
		}
		for end := int(min(r.until-at, uint64(len(rows)))); i < end; i++ {
			if i == bad {
				return r.indices.wrong("row %d: there is no column %d, as there are %d: save the matrix again", r.row, r.columns.int(b, i), r.width)
			}
			rows[i] = uint32(r.row)
		}
	}
	return nil
}

// end makes sure that nothing is left, and that rows without entries are counted
// right too.
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
