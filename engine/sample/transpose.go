package sample

import (
	"slices"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// staged is the number of entries that go through a stage of transposing together.
const staged = 128

// Transpose builds the transpose needed by the backward pass, of the matrices by relation if there
// are any; a block on a device already has it.
func (b *Block) Transpose() {
	switch {
	case b.There != nil:
	case b.Reach != nil:
		b.transposeApart()
	case b.Together != nil:
		b.related.together.transpose()
	case b.Along != nil:
		b.transposeAlong()
	case b.Related != nil:
		b.related.transpose()
	default:
		transpose(&b.CSR, &b.transposed)
	}
}

// transpose builds the transpose of a matrix in t.
func transpose(b *tensor.CSR, t *tensor.Transpose) {
	from := b.Indptr[0]
	entries := b.Indices[from:b.Indptr[b.Rows]]
	t.Indptr = slices.Grow(t.Indptr[:0], b.Cols+1)[:b.Cols+1]
	t.Rows = slices.Grow(t.Rows[:0], len(entries))[:len(entries)]
	t.Edges = slices.Grow(t.Edges[:0], len(entries))[:len(entries)]
	b.Transposed, b.Stamp = t, tensor.NewStamp()
	clear(t.Indptr)
	if len(entries) == 0 {
		return
	}
	// ends[c] first counts the entries of column c, then is the index of its next entry,
	// and finally the end of the column.
	ends := t.Indptr[1:]
	for e := 0; e < len(entries); e += staged {
		some := entries[e:min(e+staged, len(entries))]
		prefetchCounts(ends, entries[min(e+staged, len(entries)):])
		for _, c := range some {
			ends[c]++
		}
	}
	sum := int64(0)
	for c, n := range ends {
		ends[c] = sum
		sum += n
	}
	r := 0
	var to [staged]uint32
	for e := 0; e < len(entries); e += staged {
		some := entries[e:min(e+staged, len(entries))]
		prefetchCounts(ends, entries[min(e+staged, len(entries)):])
		for i, c := range some {
			to[i] = uint32(ends[c])
			ends[c]++
		}
		prefetch(unsafe.Pointer(&t.Rows[0]), &to[0], len(some), 2)
		prefetch(unsafe.Pointer(&t.Edges[0]), &to[0], len(some), 2)
		for i := range some {
			for int64(e+i) >= b.Indptr[r+1]-from {
				r++
			}
			t.Rows[to[i]], t.Edges[to[i]] = int32(r), int32(e+i)
		}
	}
}

// prefetchCounts prefetches the counts of the next columns.
func prefetchCounts(ends []int64, columns []int32) {
	if len(columns) > 0 {
		prefetch(unsafe.Pointer(&ends[0]), (*uint32)(unsafe.Pointer(&columns[0])), min(staged, len(columns)), 3)
	}
}
