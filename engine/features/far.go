package features

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Far are rows that came from other nodes: dense or sparse, as the store's are. The
// place of row i is the number of vertices of the graph + the rows that are kept + i.
// One goroutine at a time uses it; its memory is used again.
type Far struct {
	// Kept are rows that came before, nil: none are. Many may share them; theirs must
	// be nil.
	Kept *Far
	// Memory is where dense rows are received; nil: in ordinary memory.
	Memory tensor.Arena

	Dense  tensor.Matrix // F32 or BF16
	Scale  tensor.Matrix // what rows of Dense are multiplied by, Rows x 1; none: nothing
	Sparse tensor.CSR    // normalised, without a transpose; Values nil: all 1

	words  []uint64 // of Dense and Scale
	values []float32
	parts  []tensor.Part
	rates  []tensor.Part
}

// Rows counts them, without those that are kept.
func (far *Far) Rows() int { return far.Dense.Rows + far.Sparse.Rows }

// Bytes is the memory that they take, without those that are kept.
func (far *Far) Bytes() uint64 {
	return 8*uint64(len(far.words)+cap(far.Sparse.Indptr)) + 4*uint64(cap(far.Sparse.Indices)+cap(far.values))
}

// kept counts the rows that are kept.
func (far *Far) kept() int {
	if far.Kept == nil {
		return 0
	}
	return far.Kept.Rows()
}

// Room makes place for rows and returns their bytes, where they are put as they
// come: row after row, each of f.RowBytes. It is for dense rows.
func (far *Far) Room(f Form, rows int) []byte {
	n := rows * f.RowBytes()
	if words := (n + 7) / 8; words > len(far.words) {
		// Nothing holds it while the larger one is made.
		far.words, far.Dense, far.Scale = nil, tensor.Matrix{}, tensor.Matrix{}
		clear(far.parts)
		clear(far.rates)
		far.words = far.take(words + words/8)
	}
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
	return unsafe.Slice((*byte)(base), 8*len(far.words))[:n:n]
}

// take is memory of so many words.
func (far *Far) take(words int) []uint64 {
	if far.Memory == nil {
		return make([]uint64, words)
	}
	far.Memory.Reset()
	return unsafe.Slice((*uint64)(far.Memory.Alloc(tensor.F32, 1, 2*words).Base()), words)
}

// Bring sets to to the dense rows in an arena of a device's, to which bring copies them.
func (far *Far) Bring(to *Far, a tensor.Arena, bring func(to, from tensor.Matrix)) {
	to.Dense, to.Scale = tensor.Matrix{}, tensor.Matrix{}
	x := far.Dense
	if x.Rows == 0 {
		return
	}
	// All words that hold them, as numbers of four bytes.
	n := (x.Rows*x.Stride*x.Type.Bytes() + 3) / 4
	all := a.Alloc(tensor.F32, 1, n)
	bring(all, tensor.Over(tensor.F32, 1, n, n, x.Base()))
	to.Dense = tensor.Over(x.Type, x.Rows, x.Cols, x.Stride, all.Base())
	if s := far.Scale; !s.None() {
		at := uintptr(s.Base()) - uintptr(x.Base())
		to.Scale = tensor.Over(s.Type, s.Rows, s.Cols, s.Stride, unsafe.Add(all.Base(), at))
	}
}

// Clear forgets all rows, before sparse ones are taken.
func (far *Far) Clear(f Form) {
	c := &far.Sparse
	*c = tensor.CSR{Cols: f.columns, Indptr: append(c.Indptr[:0], 0), Indices: c.Indices[:0]}
	far.values = far.values[:0]
	far.Dense, far.Scale = tensor.Matrix{}, tensor.Matrix{}
}

// add appends the parts that the rows are, after those of a store of so many vertices.
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

// row is a sparse row and where it stands.
func (far *Far) row(i int) (*tensor.CSR, int) {
	if kept := far.kept(); i >= kept {
		return &far.Sparse, i - kept
	}
	return &far.Kept.Sparse, i
}
