//go:build amd64 || arm64

package edges

import "unsafe"

const (
	panelBytes = 1 << 17 // of sources between one panel and the next: part of the L2 cache
	aheadBytes = 1 << 14 // prefetch distance of sources
	farthest   = 64      // maximum prefetch distance in entries
	nearBytes  = 1 << 18 // tables up to this size are in the L2 cache anyway
)

// size returns the size of a source's element.
func (s *span) size() int {
	if s.half != nil {
		return 2
	}
	return 4
}

// ahead returns the prefetch distance of sources in entries.
func (s *span) ahead() int {
	if len(s.x)*4+len(s.half)*2 <= nearBytes {
		return 0
	}
	return min(max(aheadBytes/(s.cols*s.size()), 4), farthest)
}

// operands describes a span, except for its sources, to assembly kernels. Strides are in
// bytes; step is the stride of value and scale.
type operands struct {
	y             *float32
	indptr        *int64
	indices, last *int32
	value, scale  *float32
	yStride, step int
	flags         int
}

// operands returns those starting at a row and a column.
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

// at returns the address of an element, nil if there are no rows.
func at[E any](x []E, i int) *E {
	if i < len(x) {
		return &x[i]
	}
	return nil
}
