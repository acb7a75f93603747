//go:build amd64 || arm64

package edges

import "unsafe"

const (
	panelBytes = 1 << 17 // of sources between one panel and the next: some of the second cache
	aheadBytes = 1 << 14 // how far ahead sources are fetched
	farthest   = 64      // and how many entries at most
	nearBytes  = 1 << 18 // of a table that is in the second cache anyway
)

// size is that of an element of a source.
func (s *span) size() int {
	if s.half != nil {
		return 2
	}
	return 4
}

// ahead is how many entries ahead sources are fetched.
func (s *span) ahead() int {
	if len(s.x)*4+len(s.half)*2 <= nearBytes {
		return 0
	}
	return min(max(aheadBytes/(s.cols*s.size()), 4), farthest)
}

// operands are what kernels in assembly want to know of a span, beside its sources.
// Strides are in bytes; step is that of value and scale.
type operands struct {
	y             *float32
	indptr        *int64
	indices, last *int32
	value, scale  *float32
	yStride, step int
	flags         int
}

// operands are those from a row and a column on.
func (s *span) operands(row, col int) operands {
	entry := int(s.indptr[row] - s.indptr[0])
	if len(s.indices) == 0 {
		// Rows without entries read none of these.
		s.indices = none[:]
	}
	o := operands{
		y: &s.y[row*s.yStride+col], yStride: s.yStride * 4, step: s.heads * 4, indptr: &s.indptr[row],
		indices: unsafe.SliceData(s.indices[entry:]), last: &s.indices[len(s.indices)-1],
	}
	if s.onward {
		o.flags |= 1
	}
	if s.add {
		o.flags |= 2
	}
	head := col / (s.cols / s.heads)
	if s.values != nil {
		o.value = unsafe.SliceData(s.values[entry*s.heads+head:])
	}
	if s.scale != nil {
		o.scale = &s.scale[row*s.heads+head]
	}
	return o
}

var none [1]int32

// at is the address of an element, of none if there are no rows.
func at[E any](x []E, i int) *E {
	if i < len(x) {
		return &x[i]
	}
	return nil
}
