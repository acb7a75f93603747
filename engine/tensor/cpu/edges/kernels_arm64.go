package edges

import "github.com/hopmesh/hopmesh/engine/tensor/cpu/family"

const (
	lanes    = 4
	mostSums = 16 // vectors of sums in registers
)

// run sums a span with assembly and reports whether the family has any. A row is divided
// into panels of one head whose sums fit in registers. The first panel prefetches whole
// rows; the others follow soon enough to find them in the L2 cache.
func run(f family.Family, s *span, _ []int32) bool {
	if f == family.Generic {
		return false
	}
	rows := len(s.indptr) - 1
	bytes := s.cols * s.size()
	ahead := s.ahead()
	if s.panel(0) == s.cols {
		call(s, 0, s.cols, 0, rows, ahead, bytes)
		return true
	}
	entries := int64(panelBytes / bytes)
	for from := 0; from < rows; {
		to := from + 1
		for to < rows && s.indptr[to+1]-s.indptr[from] <= entries {
			to++
		}
		fetch := ahead
		for col := 0; col < s.cols; {
			n := s.panel(col)
			call(s, col, n, from, to, fetch, bytes)
			fetch = 0
			col += n
		}
		from = to
	}
	return true
}

// headLanes does nothing: no panel has two heads.
func headLanes(family.Family, []int32, int, int) {}

// panel returns the width in columns of the panel that starts at this one.
func (s *span) panel(col int) int {
	width := s.cols / s.heads
	vectors := (width + lanes - 1) / lanes
	panels := (vectors + mostSums - 1) / mostSums
	return min((vectors+panels-1)/panels*lanes, width-col%width)
}

// call sums columns of some rows. It prefetches sources ahead entries early, wide bytes
// of each starting at the first column.
func call(s *span, col, cols, from, to, ahead, wide int) {
	o := s.operands(from, col)
	rows := to - from
	if s.half != nil {
		x, xStride := at(s.half, col), s.xStride*2
		if o.value == nil {
			sumHalfNEON(o.y, o.yStride, x, xStride, o.indptr, o.indices, nil, 0, o.scale, o.step, rows, cols, ahead, o.last, wide, o.flags)
		} else {
			weighHalfNEON(o.y, o.yStride, x, xStride, o.indptr, o.indices, o.value, o.step, o.scale, o.step, rows, cols, ahead, o.last, wide, o.flags)
		}
		return
	}
	x, xStride := at(s.x, col), s.xStride*4
	if o.value == nil {
		sumNEON(o.y, o.yStride, x, xStride, o.indptr, o.indices, nil, 0, o.scale, o.step, rows, cols, ahead, o.last, wide, o.flags)
	} else {
		weighNEON(o.y, o.yStride, x, xStride, o.indptr, o.indices, o.value, o.step, o.scale, o.step, rows, cols, ahead, o.last, wide, o.flags)
	}
}
