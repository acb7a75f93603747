package features

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Errors about received rows.
var (
	errCut     = errors.New("it ends within a row")
	errTooMany = errors.New("it has more rows than were asked for")
)

// Count returns the number of sparse rows in an answer. It returns an error if there are
// more than most. The rows' contents are not checked.
func (f Form) Count(b []byte, most int) (int, error) {
	rows := 0
	for ; len(b) > 0; rows++ {
		if rows == most {
			return 0, errTooMany
		}
		n, err := f.length(b)
		if err != nil {
			return 0, err
		}
		b = b[n:]
	}
	return rows, nil
}

// length returns the size in bytes of the sparse row at the beginning of b.
func (f Form) length(b []byte) (int, error) {
	if len(b) < f.head() {
		return 0, errCut
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n) > uint64(f.columns) {
		return 0, fmt.Errorf("it has a row of %d entries in %d columns", n, f.columns)
	}
	bytes := f.head() + int(n)*f.entry()
	if bytes > len(b) {
		return 0, errCut
	}
	return bytes, nil
}

// Take appends the sparse rows of an answer to far.Sparse.
func (far *Far) Take(f Form, b []byte) error {
	c := &far.Sparse
	for len(b) > 0 {
		bytes, err := f.length(b)
		if err != nil {
			return err
		}
		n := (bytes - f.head()) / f.entry()
		if len(c.Indices) > math.MaxInt32-n {
			return errors.New("the rows of a batch have more entries than fit in 31 bits: take smaller batches")
		}
		scale := float32(1)
		if f.scaled {
			scale = math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
		}
		entries := b[f.head():bytes]
		if err := far.takeColumns(f, entries[:n*f.column()]); err != nil {
			return err
		}
		far.takeValues(f, entries[n*f.column():], n, scale)
		c.Rows++
		c.Indptr = append(c.Indptr, int64(len(c.Indices)))
		b = b[bytes:]
	}
	if !f.ones || f.scaled {
		c.Values = far.values
	}
	return nil
}

func (far *Far) takeColumns(f Form, b []byte) error {
	last, bytes := int64(-1), f.column()
	for ; len(b) > 0; b = b[bytes:] {
		column := int64(binary.LittleEndian.Uint16(b))
		if bytes == 4 {
			column = int64(binary.LittleEndian.Uint32(b))
		}
		if column <= last || column >= int64(f.columns) {
			return fmt.Errorf("it has column %d in a row, which does not ascend below %d", column, f.columns)
		}
		last = column
		far.Sparse.Indices = append(far.Sparse.Indices, int32(column))
	}
	return nil
}

// takeValues scales values exactly as Fill scales local rows, so the results have the
// same bits.
func (far *Far) takeValues(f Form, b []byte, n int, scale float32) {
	switch {
	case f.ones && !f.scaled:
	case f.ones:
		for range n {
			far.values = append(far.values, scale)
		}
	case f.half:
		for ; len(b) > 0; b = b[2:] {
			far.values = append(far.values, fromBF16(binary.LittleEndian.Uint16(b))*scale)
		}
	default:
		for ; len(b) > 0; b = b[4:] {
			far.values = append(far.values, math.Float32frombits(binary.LittleEndian.Uint32(b))*scale)
		}
	}
}
