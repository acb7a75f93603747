package p3

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A cutter cuts columns out of rows. One goroutine at a time uses it.
//
// Columns of dense rows are their elements, row after row, and then the scale of each
// row, if rows are scaled. So features stored in halves stay halves, and are multiplied
// on a device as everywhere else. Columns of sparse rows begin with 1, or 0 if all
// entries are 1, in four bytes. For each row there follow the number of entries, their
// columns, counted from the first requested one, and the values, four bytes each: as
// many rows as fit.
type cutter struct {
	answer   []byte
	vertices []uint32
	far      features.Far
	rows     features.Rows
}

// window is how many rows are held at once.
const window = 1024

// cut sets answer. The rows must be local.
func (c *cutter) cut(s *Source, q question) error {
	if s.form.Sparse() {
		return c.sparse(s, q)
	}
	f := denseForm(s.form)
	if n := uint64(q.rows) * uint64(f.bytes(q.columns.cols)); n > uint64(s.most) {
		return fmt.Errorf("%d rows of columns take %d bytes, more than the %d that an answer may have", q.rows, n, s.most)
	}
	c.answer = resize(c.answer, int(q.rows)*f.bytes(q.columns.cols))
	wide, size := s.form.RowBytes(), f.kind.Bytes()
	elements := c.answer[:int(q.rows)*q.columns.cols*size]
	scales := c.answer[len(elements):]
	for done := uint32(0); done < q.rows; {
		n := min(q.rows-done, window)
		rows := c.far.Room(s.form, int(n))
		to := rows[:0]
		for v := q.first + done; v < q.first+done+n; v++ {
			to = s.store.Append(to, s.form, v)
		}
		for ; len(rows) > 0; rows = rows[wide:] {
			elements = elements[copy(elements, rows[q.columns.first*size:q.columns.end()*size]):]
			if f.scaled {
				scales = scales[copy(scales, rows[wide-4:wide]):]
			}
		}
		done += n
	}
	return nil
}

func (c *cutter) sparse(s *Source, q question) error {
	c.answer = append(c.answer[:0], 0, 0, 0, 0)
	for done := uint32(0); done < q.rows; {
		n := min(q.rows-done, window)
		c.vertices = c.vertices[:0]
		for v := q.first + done; v < q.first+done+n; v++ {
			c.vertices = append(c.vertices, v)
		}
		s.store.Fill(&c.rows, c.vertices, false, nil)
		if c.rows.Values != nil {
			c.answer[0] = 1
		}
		for row := range int(n) {
			before := len(c.answer)
			c.row(row, q.columns)
			if len(c.answer) <= s.most {
				continue
			}
			if before == 4 {
				return fmt.Errorf("columns of vertex %d take more than the %d bytes of an answer", q.first, s.most)
			}
			c.answer = c.answer[:before] // the others are requested again
			return nil
		}
		done += n
	}
	return nil
}

// row appends the entries of a sparse row.
func (c *cutter) row(row int, s span) {
	from, end := c.rows.Indptr[row], c.rows.Indptr[row+1]
	columns := c.rows.Indices[from:end]
	at, _ := slices.BinarySearch(columns, int32(s.first))
	n, _ := slices.BinarySearch(columns[at:], int32(s.end()))
	c.answer = binary.LittleEndian.AppendUint32(c.answer, uint32(n))
	for _, column := range columns[at : at+n] {
		if relative := column - int32(s.first); columnBytes(s.cols) == 2 {
			c.answer = binary.LittleEndian.AppendUint16(c.answer, uint16(relative))
		} else {
			c.answer = binary.LittleEndian.AppendUint32(c.answer, uint32(relative))
		}
	}
	if c.rows.Values != nil {
		c.answer = append(c.answer, plain.Bytes(c.rows.Values[int(from)+at:][:n])...)
	}
}

// columnBytes returns the size of an entry's column.
func columnBytes(cols int) int {
	if cols <= 1<<16 {
		return 2
	}
	return 4
}

// dense is the layout of columns of dense rows.
type dense struct {
	kind   tensor.Type
	scaled bool
}

func denseForm(f features.Form) dense {
	var far features.Far
	far.Room(f, 0)
	return dense{far.Dense.Type, !far.Scale.None()}
}

// bytes returns the size of a row of so many columns.
func (f dense) bytes(cols int) int {
	if f.scaled {
		return cols*f.kind.Bytes() + 4
	}
	return cols * f.kind.Bytes()
}
