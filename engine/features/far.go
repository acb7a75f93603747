package features

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Far holds feature rows received from other nodes, dense or sparse like the store's. Row
// i has the place vertices of the graph + kept rows + i. It is not safe for concurrent
// use; its memory is reused.
type Far struct {
	// Kept holds rows received earlier, or is nil. Many Fars may share it; its own Kept
	// must be nil.
	Kept *Far
	// Memory is the arena that dense rows are received in; nil means ordinary memory.
	Memory tensor.Arena

	Dense  tensor.Matrix // F32 or BF16
	Scale  tensor.Matrix // the factor of each row of Dense, Rows x 1; empty if rows are not scaled
	Sparse tensor.CSR    // normalised, without a transpose; nil Values means all 1

	words  []uint64 // memory of Dense and Scale
	values []float32
	parts  []tensor.Part
	rates  []tensor.Part
}

// Rows returns the number of rows, without the kept ones.
func (far *Far) Rows() int { return far.Dense.Rows + far.Sparse.Rows }

// Bytes returns the memory of the rows, without the kept ones.
func (far *Far) Bytes() uint64 {
	return 8*uint64(len(far.words)+cap(far.Sparse.Indptr)) + 4*uint64(cap(far.Sparse.Indices)+cap(far.values))
}

// kept returns the number of kept rows.
func (far *Far) kept() int {
	if far.Kept == nil {
		return 0
	}
	return far.Kept.Rows()
}

// Room makes room for dense rows and returns their bytes, which the caller fills in: row
// after row, f.RowBytes each.
func (far *Far) Room(f Form, rows int) []byte {
	n := rows * f.RowBytes()
	if words := (n + 7) / 8; words > len(far.words) {
		room := far.room(words)
		// Release the old memory before the larger one is allocated.
		far.words, far.Dense, far.Scale = nil, tensor.Matrix{}, tensor.Matrix{}
		clear(far.parts)
		clear(far.rates)
		far.words = far.take(room)
	}
	far.lay(f, rows)
	return far.raw()[:n:n]
}

// Within has far hold dense rows in memory of the caller's, and returns their bytes, which the
// caller fills in: row after row, f.RowBytes each.
func (far *Far) Within(f Form, rows int, memory []uint64) []byte {
	far.words = memory
	far.lay(f, rows)
	return far.raw()[: rows*f.RowBytes() : rows*f.RowBytes()]
}

// lay sets the matrices of dense rows that lie in words.
func (far *Far) lay(f Form, rows int) {
	base := unsafe.Pointer(unsafe.SliceData(far.words))
	t := tensor.F32
	if f.half {
		t = tensor.BF16
	}
	far.Sparse = tensor.CSR{}
	far.Dense, far.Scale = tensor.Over(t, rows, f.columns, f.RowBytes()/t.Bytes(), base), tensor.Matrix{}
	if f.scaled {
		at := unsafe.Pointer(nil)
		if rows > 0 {
			at = unsafe.Add(base, f.RowBytes()-scaleBytes)
		}
		far.Scale = tensor.Over(tensor.F32, rows, 1, f.RowBytes()/4, at)
	}
}

// room returns for how many words there is to be memory, for so many at least: at first for
// all that the arena has, later for some more.
func (far *Far) room(words int) int {
	if far.Memory != nil && far.words == nil {
		const ends = 16 // what begins at a whole cache line, and ends at one
		if has := far.Memory.Bytes()/8 - ends; has >= words {
			return has
		}
	}
	return words + words/8
}

// take returns memory of so many words.
func (far *Far) take(words int) []uint64 {
	if far.Memory == nil {
		return make([]uint64, words)
	}
	far.Memory.Reset()
	return unsafe.Slice((*uint64)(far.Memory.Alloc(tensor.F32, 1, 2*words).Base()), words)
}

// Bring sets to to the dense rows in a device's arena; bring copies them there.
func (far *Far) Bring(to *Far, a tensor.Arena, bring func(to, from tensor.Matrix)) {
	to.Dense, to.Scale = tensor.Matrix{}, tensor.Matrix{}
	x := far.Dense
	if x.Rows == 0 {
		return
	}
	// All words of the rows, as four-byte numbers.
	n := (x.Rows*x.Stride*x.Type.Bytes() + 3) / 4
	all := a.Alloc(tensor.F32, 1, n)
	bring(all, tensor.Over(tensor.F32, 1, n, n, x.Base()))
	to.Dense = tensor.Over(x.Type, x.Rows, x.Cols, x.Stride, all.Base())
	if s := far.Scale; !s.None() {
		at := uintptr(s.Base()) - uintptr(x.Base())
		to.Scale = tensor.Over(s.Type, s.Rows, s.Cols, s.Stride, unsafe.Add(all.Base(), at))
	}
}

// Clear removes all rows, before sparse ones are taken.
func (far *Far) Clear(f Form) {
	c := &far.Sparse
	*c = tensor.CSR{Cols: f.columns, Indptr: append(c.Indptr[:0], 0), Indices: c.Indices[:0]}
	far.values = far.values[:0]
	far.Dense, far.Scale = tensor.Matrix{}, tensor.Matrix{}
}

// add appends the parts that hold these rows to those of a store of so many vertices.
func (far *Far) add(parts, rates []tensor.Part, total uint32) (allParts, allRates []tensor.Part) {
	far.parts, far.rates = append(far.parts[:0], parts...), append(far.rates[:0], rates...)
	for _, from := range [...]*Far{far.Kept, far} {
		if from == nil || from.Dense.Rows == 0 {
			continue
		}
		far.parts = append(far.parts, tensor.Part{First: total, X: from.Dense})
		if !from.Scale.None() {
			far.rates = append(far.rates, tensor.Part{First: total, X: from.Scale})
		}
		total += uint32(from.Dense.Rows)
	}
	return far.parts, far.rates
}

// row returns the CSR that holds sparse row i, and the row's index in it.
func (far *Far) row(i int) (*tensor.CSR, int) {
	if kept := far.kept(); i >= kept {
		return &far.Sparse, i - kept
	}
	return &far.Kept.Sparse, i
}
