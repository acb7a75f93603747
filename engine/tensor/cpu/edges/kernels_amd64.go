package edges

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
)

const (
	panelBytes = 1 << 17 // of sources between one panel and the next: some of the second cache
	aheadBytes = 1 << 14 // how far ahead sources are fetched
	farthest   = 64      // and how many entries at most
	nearBytes  = 1 << 18 // of a table that is in the second cache anyway
	splitBytes = 256     // of a row that is read in two panels at least
)

// run sums a span with assembly, if there is some for the family. A row is cut into
// panels whose sums fit in registers. The first panel fetches whole rows ahead, and
// the others follow soon enough to find them in the second cache.
//
// Rows of a few lines are cut in two even where one panel would do: reading half of
// a row in ascending order makes the CPU fetch the other half by itself, beside what
// is fetched here, where it would fetch beyond a row that is read at once. That is
// worth a fifth to a third.
func run(f family.Family, s *span, lanes []int32) bool {
	if f == family.Generic {
		return false
	}
	if f == family.AVX512 && s.heads == 1 && s.half == nil && s.cols <= 16 {
		// One line in two halves comes a fifth to a third faster than as a whole.
		f = family.AVX2
	}
	rows := len(s.indptr) - 1
	bytes := s.cols * s.size()
	ahead := min(max(aheadBytes/bytes, 4), farthest)
	if len(s.x)*4+len(s.half)*2 <= nearBytes {
		ahead = 0
	}
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

// size is that of an element of a source.
func (s *span) size() int {
	if s.half != nil {
		return 2
	}
	return 4
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

// sums is how many vectors of sums fit in registers.
func sums(f family.Family, s *span) int {
	switch {
	case f == family.AVX512:
		return 16
	case s.half != nil:
		return 10
	}
	return 11
}

// panel is how many columns from this one on are one panel. It has no more heads
// than a vector has lanes.
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

// headLanes writes, for each column, which of the weights that a panel loads is
// its own.
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
	entry := int(s.indptr[from] - s.indptr[0])
	if len(s.indices) == 0 {
		// Rows without entries read none of these.
		s.indices = none[:]
	}
	y := &s.y[from*s.yStride+col]
	indices, last := unsafe.SliceData(s.indices[entry:]), &s.indices[len(s.indices)-1]
	flags := 0
	if s.onward {
		flags |= 1
	}
	if s.add {
		flags |= 2
	}
	head := 0
	var value, scale *float32
	var lane *int32
	if s.heads > 1 {
		head, lane = col/(s.cols/s.heads), &lanes[col]
	}
	if s.values != nil {
		value = unsafe.SliceData(s.values[entry*s.heads+head:])
	}
	if s.scale != nil {
		scale = &s.scale[from*s.heads+head]
	}
	yStride, step := s.yStride*4, s.heads*4
	indptr, rows := &s.indptr[from], to-from
	ahead *= 4
	if s.half != nil {
		x, xStride := at(s.half, col), s.xStride*2
		switch {
		case f == family.AVX512 && value == nil:
			sumHalfAVX512(y, yStride, x, xStride, indptr, indices, value, step, scale, step, lane, rows, cols, ahead, last, wide, flags)
		case f == family.AVX512:
			weighHalfAVX512(y, yStride, x, xStride, indptr, indices, value, step, scale, step, lane, rows, cols, ahead, last, wide, flags)
		case value == nil:
			sumHalfAVX2(y, yStride, x, xStride, indptr, indices, value, step, scale, step, lane, rows, cols, ahead, last, wide, flags)
		default:
			weighHalfAVX2(y, yStride, x, xStride, indptr, indices, value, step, scale, step, lane, rows, cols, ahead, last, wide, flags)
		}
		return
	}
	x, xStride := at(s.x, col), s.xStride*4
	switch {
	case f == family.AVX512 && value == nil:
		sumAVX512(y, yStride, x, xStride, indptr, indices, value, step, scale, step, lane, rows, cols, ahead, last, wide, flags)
	case f == family.AVX512 && s.heads == 1:
		weighAVX512(y, yStride, x, xStride, indptr, indices, value, step, scale, step, lane, rows, cols, ahead, last, wide, flags)
	case f == family.AVX512:
		headsAVX512(y, yStride, x, xStride, indptr, indices, value, step, scale, step, lane, rows, cols, ahead, last, wide, flags)
	case value == nil:
		sumAVX2(y, yStride, x, xStride, indptr, indices, value, step, scale, step, lane, rows, cols, ahead, last, wide, flags)
	case s.heads == 1:
		weighAVX2(y, yStride, x, xStride, indptr, indices, value, step, scale, step, lane, rows, cols, ahead, last, wide, flags)
	default:
		headsAVX2(y, yStride, x, xStride, indptr, indices, value, step, scale, step, lane, rows, cols, ahead, last, wide, flags)
	}
}

var none [1]int32

// at is the address of an element, of none if there are no rows.
func at[E any](x []E, i int) *E {
	if i < len(x) {
		return &x[i]
	}
	return nil
}
