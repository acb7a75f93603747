package edges

import "github.com/hopmesh/hopmesh/engine/tensor"

// A span is the work of one kernel call: it sums some rows, each over its entries in
// order, starting from 0.
type span struct {
	y       []float32 // the rows; y begins at the first column
	yStride int
	cols    int

	x       []float32 // the sources' rows; BF16 ones are in half
	half    []uint16
	xStride int

	indptr  []int64 // starts of the rows, and the end
	indices []int32 // from indptr[0] on; extends beyond the end, for prefetching
	// values holds the weights, one per head, of the entries from indptr[0] on; nil means
	// 1. Entry i has the weight values[i*heads+h] in the columns of head h.
	values []float32
	heads  int
	scale  []float32 // factors of the sums, one per head of each row, or nil

	onward bool // the sums start from the values in y
	add    bool // the values in y are added to the sums after scaling
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

// to sets the output rows, starting at this one.
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

// byHeads prepares for spans with the weights of several heads.
func (e *Edges) byHeads(cols, heads int) {
	if heads > 1 && (e.lanesOf != [2]int{cols, heads}) {
		e.lanes, e.lanesOf = grown(e.lanes, cols), [2]int{cols, heads}
		headLanes(e.family, e.lanes, cols, heads)
	}
}
