package cpu

import "github.com/hopmesh/hopmesh/engine/tensor"

// Elements in a chunk of work: some 20 µs if memory is the limit. Chunks never depend on
// the number of threads, since sums over them would.
const (
	grain     = 32 << 10
	lossGrain = 8 << 10 // with an exponential for each
)

// A cut is the division of an operation's work into chunks: of whole rows or, if no
// operand has gaps between rows and the operation allows it, of elements.
type cut struct {
	rows, cols int
	grain      int // rows, or elements, per chunk
	chunks     int
	flat       bool
}

// byRows cuts into chunks of rows with about so many elements.
func byRows(rows, cols, elements int) cut {
	if cols == 0 {
		return cut{}
	}
	g := max(1, elements/cols)
	return cut{rows: rows, cols: cols, grain: g, chunks: (rows + g - 1) / g}
}

// byElements cuts an element-wise operation on some matrices.
func byElements(first tensor.Matrix, others ...tensor.Matrix) cut {
	rows, cols := first.Rows, first.Cols
	gaps := first.Stride != cols
	for _, m := range others {
		gaps = gaps || m.Stride != cols && !m.None()
	}
	if gaps && rows > 1 {
		return byRows(rows, cols, grain)
	}
	n := rows * cols
	return cut{rows: rows, cols: cols, grain: grain, chunks: (n + grain - 1) / grain, flat: true}
}

// at returns the first row of a chunk and the number of its rows; elements, if flat.
func (c *cut) at(chunk int) (first, n int) {
	all := c.rows
	if c.flat {
		all *= c.cols
	}
	first = chunk * c.grain
	return first, min(c.grain, all-first)
}

// of returns a chunk's part of a matrix; empty for an empty matrix.
func (c *cut) of(m tensor.Matrix, chunk int) tensor.Matrix {
	if m.None() {
		return m
	}
	first, n := c.at(chunk)
	if c.flat {
		return tensor.Over(m.Type, 1, m.Rows*m.Cols, m.Rows*m.Cols, m.Base()).View(0, 1, first, n)
	}
	return m.RowRange(first, n)
}
