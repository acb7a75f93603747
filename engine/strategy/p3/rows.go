package p3

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// dense fills y with the dense rows of vertices. a is scratch memory.
func (c *Columns) dense(d tensor.Device, a tensor.Arena, y tensor.Matrix, vertices []uint32) {
	d.Gather(y, c.rows, vertices)
	if c.rates != nil {
		rates := a.Alloc(d.Type(), len(vertices), 1)
		d.Gather(rates, c.rates, vertices)
		d.ScaleRows(y, y, rates)
	}
}

// droppedAtOnce is how many rows get dropout at once.
const droppedAtOnce = 256

// A mask is a sparse matrix without zeros. It gives dense rows their columns in the
// whole, on which dropout depends.
type mask struct{ tensor.CSR }

func (m *mask) of(s span) *tensor.CSR {
	if len(m.Indptr) > 0 {
		return &m.CSR
	}
	for row := range droppedAtOnce {
		m.Indptr = append(m.Indptr, int64(row*s.cols))
		for column := s.first; column < s.end(); column++ {
			m.Indices = append(m.Indices, int32(column))
		}
	}
	m.Indptr = append(m.Indptr, int64(droppedAtOnce*s.cols))
	m.Cols = s.end()
	return &m.CSR
}

// drop applies dropout to the rows x, by columns of the whole.
func (c *Columns) drop(d tensor.Device, a tensor.Arena, x tensor.Matrix, drop tensor.Dropout, m *mask) tensor.Matrix {
	y := a.Alloc(x.Type, x.Rows, x.Cols)
	g := m.of(c.span)
	vertices := drop.Vertices
	for at := 0; at < x.Rows; at += g.Rows {
		g.Rows = min(droppedAtOnce, x.Rows-at)
		n := g.Rows * x.Cols
		drop.Vertices = vertices[at:][:g.Rows]
		d.DropValues(y.RowRange(at, g.Rows).Reshape(1, n), x.RowRange(at, g.Rows).Reshape(1, n), g, drop)
	}
	return y
}

// fill sets p to the sparse rows of vertices, with columns of the whole.
func (c *Columns) fill(p *part, s span, vertices []uint32) {
	p.indptr = append(p.indptr[:0], 0)
	p.indices, p.values = p.indices[:0], p.values[:0]
	at := 0
	for _, v := range vertices {
		if first := c.layout.Firsts[at]; v < first || v >= c.layout.Firsts[at+1] {
			at = c.layout.Shard(v)
		}
		rows := &c.shards[at]
		row := v - c.layout.Firsts[at]
		from, end := rows.indptr[row], rows.indptr[row+1]
		if s != c.span {
			all := rows.indices[from:end]
			first, _ := slices.BinarySearch(all, int32(s.first))
			n, _ := slices.BinarySearch(all[first:], int32(s.end()))
			from += int64(first)
			end = from + int64(n)
		}
		p.indices = append(p.indices, rows.indices[from:end]...)
		switch {
		case !c.valued:
		case rows.values != nil:
			p.values = append(p.values, rows.values[from:end]...)
		default:
			for range end - from {
				p.values = append(p.values, 1)
			}
		}
		p.indptr = append(p.indptr, int64(len(p.indices)))
	}
	p.CSR = tensor.CSR{Rows: len(vertices), Cols: s.end(), Indptr: p.indptr, Indices: p.indices}
	if c.valued {
		p.Values = p.values
	}
}

// rebase counts columns from the first of a span on, and makes the transpose.
func (p *part) rebase(s span) {
	for i := range p.indices {
		p.indices[i] -= int32(s.first)
	}
	p.Cols = s.cols
	p.Transpose()
}

// targets returns the first rows, and the matrix in place of their values.
func (p *part) targets(rows int) (g tensor.CSR, values tensor.Matrix) {
	g = tensor.CSR{Rows: rows, Cols: p.Cols, Indptr: p.Indptr[:rows+1], Indices: p.Indices, Values: p.Values}
	if !p.dropped.None() {
		values = p.dropped.View(0, 1, 0, g.Entries())
	}
	return g, values
}
