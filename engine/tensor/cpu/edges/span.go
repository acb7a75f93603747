package edges

import "github.com/hopmesh/hopmesh/engine/tensor"

// A span is what one call of a kernel sums: some rows, each over its entries in
// their order, starting from 0.
type span struct {
	y       []float32 // the rows, the first column first
	yStride int
	cols    int

	x       []float32 // the sources' rows, or half if they are BF16
	half    []uint16
	xStride int

	indptr  []int64 // of the rows, and the end
	indices []int32 // from indptr[0] on, and on beyond the end, to fetch ahead
	// values are the weights, one a head, of the entries from indptr[0] on; nil:
	// all are 1. Entry i counts values[i*heads+h] in the columns of head h.
	values []float32
	heads  int
	scale  []float32 // what the sums are multiplied with, one a head of each row, or nil

	onward bool // the sums start from what y holds
	add    bool // what y held is added to the sums when they are scaled
}

// from sets the sources.
func (s *span) from(x tensor.Matrix) {
	s.x, s.half, s.xStride = nil, nil, x.Stride
	if x.Type == tensor.BF16 {
		s.half = x.BF16()
	} else {
		s.x = x.F32()
	}
}

// to sets the rows from this one on.
func (s *span) to(y tensor.Matrix, row int) {
	s.y, s.yStride, s.cols = nil, y.Stride, y.Cols
	if y.Cols > 0 && row < y.Rows {
		s.y = y.F32()[row*y.Stride:]
	}
}

// sum runs the span.
func (e *Edges) sum(s *scratch) {
	if s.span.cols == 0 || len(s.span.indptr) < 2 {
		return
	}
	if run(e.family, &s.span, e.lanes) {
		return
	}
	sumGeneric(&s.span, s.sum[:s.span.cols])
}

// byHeads makes ready for spans with the weights of several heads.
func (e *Edges) byHeads(cols, heads int) {
	if heads > 1 && (e.lanesOf != [2]int{cols, heads}) {
		e.lanes, e.lanesOf = grown(e.lanes, cols), [2]int{cols, heads}
		headLanes(e.family, e.lanes, cols, heads)
	}
}
