package edges

import "github.com/hopmesh/hopmesh/engine/tensor/cpu/family"

const splitBytes = 256 // minimum bytes of a row that is read in two panels

// run sums a span with assembly and reports whether the family has any. A row is divided
// into panels whose sums fit in registers. The first panel prefetches whole rows; the
// others follow soon enough to find them in the L2 cache.
//
// Rows of a few lines are divided in two even if one panel would do: after reading half
// of a row in ascending order the CPU's own prefetcher fetches the other half; if a row
// is read at once, it would fetch beyond the row. That is a fifth to a third faster.
func run(f family.Family, s *span, lanes []int32) bool {
	if f == family.Generic {
		return false
	}
	if f == family.AVX512 && s.heads == 1 && s.half == nil && s.cols <= 16 {
		// Reading one line in two halves is a fifth to a third faster than as a whole.
		f = family.AVX2
	}
	rows := len(s.indptr) - 1
	bytes := s.cols * s.size()
	ahead := s.ahead()
	first := s.panel(f, 0)
	if first == s.cols || ahead == 0 && s.heads == 1 && s.vectors(f) <= sums(f, s) {
		call(f, s, lanes, 0, s.cols, 0, rows, ahead, 0)
		return true
	}
	entries := int64(panelBytes / bytes)
	for from := 0; from < rows; {
		to := from + 1
		for to < rows && s.indptr[to+1]-s.indptr[from] <= entries {
			to++
		}
		fetch, wide := ahead, bytes
		for col := 0; col < s.cols; {
			n := s.panel(f, col)
			call(f, s, lanes, col, n, from, to, fetch, wide)
			fetch, wide = 0, 0
			col += n
		}
		from = to
	}
	return true
}

func lanesOf(f family.Family) int {
	if f == family.AVX2 {
		return 8
	}
	return 16
}

func (s *span) vectors(f family.Family) int {
	return (s.cols + lanesOf(f) - 1) / lanesOf(f)
}

// sums returns the number of vectors of sums that fit in registers.
func sums(f family.Family, s *span) int {
	switch {
	case f == family.AVX512:
		return 16
	case s.half != nil:
		return 10
	}
	return 11
}

// panel returns the width in columns of the panel that starts at this one. It has no more
// heads than a vector has lanes.
func (s *span) panel(f family.Family, col int) int {
	lanes, vectors := lanesOf(f), s.vectors(f)
	panels := (vectors + sums(f, s) - 1) / sums(f, s)
	if panels == 1 && s.cols*s.size() >= splitBytes {
		panels = 2
	}
	n := (vectors + panels - 1) / panels * lanes
	if s.heads > 1 {
		width := s.cols / s.heads
		for n > lanes && (min(col+n, s.cols)-1)/width-col/width >= lanes {
			n -= lanes
		}
	}
	return min(n, s.cols-col)
}

// headLanes writes, for each column, which of the weights loaded for a panel is its own.
func headLanes(f family.Family, to []int32, cols, heads int) {
	s := span{cols: cols, heads: heads}
	width := cols / heads
	for col := 0; col < cols; {
		n := s.panel(f, col)
		for c := col; c < col+n; c++ {
			to[c] = int32(c/width - col/width)
		}
		col += n
	}
}

// call sums columns of some rows.
func call(f family.Family, s *span, lanes []int32, col, cols, from, to, ahead, wide int) {
	o := s.operands(from, col)
	var lane *int32
	if s.heads > 1 {
		lane = &lanes[col]
	}
	rows := to - from
	ahead *= 4
	if s.half != nil {
		x, xStride := at(s.half, col), s.xStride*2
		switch {
		case f == family.AVX512 && o.value == nil:
			sumHalfAVX512(o.y, o.yStride, x, xStride, o.indptr, o.indices, o.value, o.step, o.scale, o.step, lane, rows, cols, ahead, o.last, wide, o.flags)
		case f == family.AVX512:
			weighHalfAVX512(o.y, o.yStride, x, xStride, o.indptr, o.indices, o.value, o.step, o.scale, o.step, lane, rows, cols, ahead, o.last, wide, o.flags)
		case o.value == nil:
			sumHalfAVX2(o.y, o.yStride, x, xStride, o.indptr, o.indices, o.value, o.step, o.scale, o.step, lane, rows, cols, ahead, o.last, wide, o.flags)
		default:
			weighHalfAVX2(o.y, o.yStride, x, xStride, o.indptr, o.indices, o.value, o.step, o.scale, o.step, lane, rows, cols, ahead, o.last, wide, o.flags)
		}
		return
	}
	x, xStride := at(s.x, col), s.xStride*4
	switch {
	case f == family.AVX512 && o.value == nil:
		sumAVX512(o.y, o.yStride, x, xStride, o.indptr, o.indices, o.value, o.step, o.scale, o.step, lane, rows, cols, ahead, o.last, wide, o.flags)
	case f == family.AVX512 && s.heads == 1:
		weighAVX512(o.y, o.yStride, x, xStride, o.indptr, o.indices, o.value, o.step, o.scale, o.step, lane, rows, cols, ahead, o.last, wide, o.flags)
	case f == family.AVX512:
		headsAVX512(o.y, o.yStride, x, xStride, o.indptr, o.indices, o.value, o.step, o.scale, o.step, lane, rows, cols, ahead, o.last, wide, o.flags)
	case o.value == nil:
		sumAVX2(o.y, o.yStride, x, xStride, o.indptr, o.indices, o.value, o.step, o.scale, o.step, lane, rows, cols, ahead, o.last, wide, o.flags)
	case s.heads == 1:
		weighAVX2(o.y, o.yStride, x, xStride, o.indptr, o.indices, o.value, o.step, o.scale, o.step, lane, rows, cols, ahead, o.last, wide, o.flags)
	default:
		headsAVX2(o.y, o.yStride, x, xStride, o.indptr, o.indices, o.value, o.step, o.scale, o.step, lane, rows, cols, ahead, o.last, wide, o.flags)
	}
}
