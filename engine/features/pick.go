package features

import (
	"errors"
	"math"
	"unsafe"
)

// Pick sets far to n rows taken from other Fars, all in the form f. of(i) returns the Far
// and the row that row i comes from; it is called once for each i, in order.
func (far *Far) Pick(f Form, n int, of func(i int) (*Far, int)) error {
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
	far.Clear(f)
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

// raw returns the bytes of the dense rows.
func (far *Far) raw() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(far.words))), 8*len(far.words))
}
