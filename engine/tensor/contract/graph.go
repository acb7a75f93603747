package contract

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A graph is a CSR, and a copy with the magnitudes of its values.
type graph struct {
	*tensor.CSR
	positive *tensor.CSR
}

func (s side) graph(g *graph) *tensor.CSR {
	if s.at == magnitudes {
		return g.positive
	}
	return g.CSR
}

// graph draws the number of entries of each row: none, one, up to most. Some columns have
// none, some two in one row.
func (b *bench) graph(rows, cols, most int, values bool) *graph {
	degrees := make([]int, rows)
	for r := range degrees {
		switch b.below(4) {
		case 0:
		case 1:
			degrees[r] = 1
		default:
			degrees[r] = b.below(most + 1)
		}
	}
	return b.withDegrees(cols, degrees, values)
}

// hubs returns a graph with a row of very many entries in the middle, and a column that
// nearly every row has an entry in.
func (b *bench) hubs(rows, cols, most int, values bool) *graph {
	g := b.graph(rows, cols, 5, values)
	degrees := make([]int, rows)
	for r := range degrees {
		degrees[r] = int(g.Indptr[r+1] - g.Indptr[r])
	}
	degrees[rows/2] = most
	g = b.withDegrees(cols, degrees, values)
	for r := range rows {
		if degrees[r] > 0 && r != rows/2 {
			g.Indices[g.Indptr[r]] = int32(cols / 3)
		}
	}
	g.transpose()
	return g
}

// withDegrees draws the entries. They are preceded by others that do not belong to the
// CSR.
func (b *bench) withDegrees(cols int, degrees []int, values bool) *graph {
	before := []int{0, 0, 1, 5}[b.below(4)]
	g := &tensor.CSR{Rows: len(degrees), Cols: cols, Indptr: []int64{int64(before)}}
	g.Indices = make([]int32, before, before+8)
	if values {
		g.Values = make([]float32, before, before+8)
		for i := range g.Values {
			g.Values[i] = float32(math.NaN())
		}
	}
	for _, degree := range degrees {
		if cols == 0 {
			degree = 0
		}
		for range degree {
			g.Indices = append(g.Indices, int32(b.below(cols)))
			if values {
				g.Values = append(g.Values, float32(b.fine(1)[0]))
			}
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	both := &graph{CSR: g}
	both.transpose()
	return both
}

// transpose builds the transpose for backward, and the copy with magnitudes.
func (g *graph) transpose() {
	t := &tensor.Transpose{
		Indptr: make([]int64, g.Cols+1), Rows: make([]int32, g.Entries()), Edges: make([]int32, g.Entries()),
	}
	first := g.Indptr[0]
	for _, c := range g.Indices[first:] {
		t.Indptr[c+1]++
	}
	for c := range g.Cols {
		t.Indptr[c+1] += t.Indptr[c]
	}
	next := append([]int64(nil), t.Indptr...)
	for r := range g.Rows {
		for e := g.Indptr[r]; e < g.Indptr[r+1]; e++ {
			c := g.Indices[e]
			t.Rows[next[c]], t.Edges[next[c]] = int32(r), int32(e-first)
			next[c]++
		}
	}
	g.Transposed = t
	p := *g.CSR
	if g.Values != nil {
		p.Values = make([]float32, len(g.Values))
		for i, v := range g.Values {
			p.Values[i] = float32(math.Abs(float64(v)))
		}
	}
	g.positive = &p
}
