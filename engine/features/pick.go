package features

import (
	"errors"
	"math"
	"unsafe"
)

// Append appends n rows of other Fars, all in the form f, where rows are sparse; dense ones
// replace those that were there. of(i) returns the Far and the row that row i comes from; it
// is called once for each i, in order.
func (far *Far) Append(f Form, n int, of func(i int) (*Far, int)) error {
	if n == 0 {
		return nil
	}
	if !f.sparse {
		to, size := far.Room(f, n), f.RowBytes()
		for i := range n {
			from, row := of(i)
			copy(to[i*size:][:size], from.raw()[row*size:])
		}
		return nil
	}
	c := &far.Sparse
	valued := !f.ones || f.scaled
	for i := range n {
		from, row := of(i)
		at, end := from.Sparse.Indptr[row], from.Sparse.Indptr[row+1]
		if int64(len(c.Indices))+end-at > math.MaxInt32 {
			return errors.New("they have more entries than fit in 31 bits")
		}
		c.Indices = append(c.Indices, from.Sparse.Indices[at:end]...)
		if valued {
			far.values = append(far.values, from.values[at:end]...)
		}
		c.Rows++
		c.Indptr = append(c.Indptr, int64(len(c.Indices)))
	}
	if valued {
		c.Values = far.values
	}
	return nil
}

// Raw returns the bytes of the dense rows, row after row.
func (far *Far) Raw(f Form) []byte { return far.raw()[:far.Dense.Rows*f.RowBytes()] }

// Over sets far to dense rows that lie in b, which must be aligned to eight bytes.
func (far *Far) Over(f Form, rows int, b []byte) {
	far.words = unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
	far.lay(f, rows)
}

// raw returns the bytes of the dense rows.
func (far *Far) raw() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(far.words))), 8*len(far.words))
}
