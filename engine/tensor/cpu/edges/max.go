package edges

import "github.com/hopmesh/hopmesh/engine/tensor"

// maximum is the state of AggregateMax.
type maximum struct {
	e       *Edges
	cut     cut
	y, x    tensor.Matrix
	which   tensor.Matrix
	indices []int32
}

// AggregateMax implements tensor.Aggregations.
func (e *Edges) AggregateMax(y, which tensor.Matrix, g *tensor.CSR, x tensor.Matrix) {
	mustBe(y, g.Rows, x.Cols, "a maximum has the rows of the graph and the columns of its input")
	mustBe(which, g.Rows, x.Cols, "what a maximum chose has its shape")
	must(x.Rows == g.Cols, "a maximum's input has a row for each column of the graph")
	if x.Cols == 0 {
		return
	}
	e.maximum = maximum{
		e: e, cut: cutOf(g.Indptr[:g.Rows+1], x.Cols*4), y: y, x: x, which: which, indices: g.Indices,
	}
	e.pool.Run(e.maximum.cut.chunks(), &e.maximum)
	e.maximum = maximum{}
}

// Do runs one chunk.
func (m *maximum) Do(chunk, _ int) {
	first, _, last := m.cut.chunk(chunk)
	for row := first; row < last; row++ {
		from, to := m.cut.indptr[row], m.cut.indptr[row+1]
		y := m.y.F32()[row*m.y.Stride:][:m.y.Cols]
		which := m.which.I32()[row*m.which.Stride:][:m.y.Cols]
		if from == to {
			clear(y)
			for j := range which {
				which[j] = -1
			}
			continue
		}
		for at := from; at < to; at += m.cut.grain {
			end := min(at+m.cut.grain, to)
			m.e.maximaOf(y, which, m.x.F32(), m.x.Stride, m.indices[at:end], at == from)
		}
	}
}

// maxGeneric computes the maximum of one row, or with begin unset updates it.
func maxGeneric(y []float32, which []int32, x []float32, stride int, indices []int32, begin bool) {
	for i, s := range indices {
		row := x[int(s)*stride:][:len(y)]
		if begin && i == 0 {
			copy(y, row)
			for j := range which {
				which[j] = s
			}
			continue
		}
		for j, v := range row {
			if v > y[j] {
				y[j], which[j] = v, s
			}
		}
	}
}

// maximumBack is the state of AggregateMaxBack, which works on columns of the graph.
type maximumBack struct {
	e       *Edges
	cut     cut
	dx, dy  tensor.Matrix
	which   tensor.Matrix
	indices []int32
	add     bool
}

// AggregateMaxBack implements tensor.Aggregations.
func (e *Edges) AggregateMaxBack(dx tensor.Matrix, g *tensor.CSR, dy, which tensor.Matrix, add bool) {
	mustBe(dx, g.Cols, dy.Cols, "a maximum's input gradient has a row for each column of the graph")
	mustBe(which, g.Rows, dy.Cols, "what a maximum chose has its shape")
	must(dy.Rows == g.Rows, "a maximum's output gradient has the rows of the graph")
	must(g.Transposed != nil, "the way back needs the transposed graph")
	if dy.Cols == 0 {
		return
	}
	t := g.Transposed
	e.maximumBack = maximumBack{
		e: e, cut: cutOf(t.Indptr[:g.Cols+1], dy.Cols*8), dx: dx, dy: dy, which: which, indices: t.Rows, add: add,
	}
	e.ready(e.maximumBack.cut, 1, dx.Cols)
	e.pool.Run(e.maximumBack.cut.chunks(), &e.maximumBack)
	e.maximumBack = maximumBack{}
}

// Do runs one chunk.
func (m *maximumBack) Do(chunk, worker int) {
	first, _, last := m.cut.chunk(chunk)
	s := &m.e.each[worker]
	for column := first; column < last; column++ {
		from, to := m.cut.indptr[column], m.cut.indptr[column+1]
		dx := m.dx.F32()[column*m.dx.Stride:][:m.dx.Cols]
		sum := s.row[:m.dx.Cols]
		clear(sum)
		for at := from; at < to; at += m.cut.grain {
			end := min(at+m.cut.grain, to)
			before := int32(-1)
			if at > from {
				before = m.indices[at-1]
			}
			maxBackGeneric(sum, m.dy.F32(), m.dy.Stride, m.which.I32(), m.which.Stride, int32(column), m.indices[at:end], before)
		}
		for j, v := range sum {
			if m.add {
				v += dx[j]
			}
			dx[j] = v
		}
	}
}

// maxBackGeneric adds to the gradient of one column from the rows that chose it. A row
// that repeats an earlier one counts once.
func maxBackGeneric(sum, dy []float32, stride int, which []int32, whichStride int, column int32, rows []int32, before int32) {
	for _, row := range rows {
		if row == before {
			continue
		}
		before = row
		w := which[int(row)*whichStride:][:len(sum)]
		for j, v := range dy[int(row)*stride:][:len(sum)] {
			if w[j] == column {
				sum[j] += v
			}
		}
	}
}
