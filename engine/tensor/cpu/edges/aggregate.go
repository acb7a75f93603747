package edges

import (
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/rows"
)

// aggregation sums the sources of rows, or the targets of columns.
type aggregation struct {
	e        *Edges
	cut      cut
	indices  []int32
	y, x     tensor.Matrix
	epilogue *tensor.Epilogue

	// An entry's factor is the product of all of these that are not nil: its value, in
	// entry order or by its position in the CSR, and the factor of the row it leads to.
	values []float32
	stand  []int32
	share  []float32
	mean   bool
	add    bool
}

// Aggregate implements tensor.Aggregations.
func (e *Edges) Aggregate(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, epilogue *tensor.Epilogue) {
	mustBe(y, g.Rows, x.Cols, "an aggregation's output has the rows of the graph and the columns of its input")
	must(x.Rows == g.Cols, "an aggregation's input has a row for each column of the graph")
	a := &e.aggregation
	*a = aggregation{
		e: e, cut: cutOf(g.Indptr[:g.Rows+1], x.Cols*x.Type.Bytes()), indices: g.Indices,
		y: y, x: x, values: valuesOf(g, values), mean: how == tensor.Mean, add: add,
	}
	if does(epilogue) {
		a.epilogue = epilogue
	}
	e.ready(a.cut, 1, a.y.Cols)
	e.pool.Run(a.cut.chunks(), a)
	*a = aggregation{}
}

// AggregateBack implements tensor.Aggregations.
func (e *Edges) AggregateBack(dx tensor.Matrix, g *tensor.CSR, values, dy tensor.Matrix, how tensor.Aggregation, add bool) {
	mustBe(dx, g.Cols, dy.Cols, "an aggregation's input gradient has a row for each column of the graph")
	must(dy.Rows == g.Rows, "an aggregation's output gradient has the rows of the graph")
	must(g.Transposed != nil, "the way back needs the transposed graph")
	t := g.Transposed
	a := &e.aggregation
	*a = aggregation{
		e: e, cut: cutOf(t.Indptr[:g.Cols+1], dy.Cols*dy.Type.Bytes()), indices: t.Rows,
		y: dx, x: dy, values: valuesOf(g, values), stand: t.Edges, add: add,
	}
	if how == tensor.Mean {
		a.share = e.sharesOf(g)
	}
	e.ready(a.cut, 1, a.y.Cols)
	e.pool.Run(a.cut.chunks(), a)
	*a = aggregation{}
}

// valuesOf returns the values of the entries from the first on, nil if all are 1.
func valuesOf(g *tensor.CSR, values tensor.Matrix) []float32 {
	switch {
	case !values.None():
		mustBe(values, 1, g.Entries(), "there is one value for each entry of the graph")
		return values.F32()
	case g.Values != nil:
		return g.Values[g.Indptr[0]:g.Indptr[g.Rows]]
	}
	return nil
}

// Do runs one chunk.
func (a *aggregation) Do(chunk, worker int) {
	s := &a.e.each[worker]
	s.span = span{heads: 1}
	s.span.from(a.x)
	first, last, hub := a.cut.chunk(chunk)
	// With an epilogue, process as many rows at a time as stay in the cache.
	step := last - first
	if a.epilogue != nil {
		step = max(1, 1<<14/max(a.y.Cols, 1))
	}
	for ; first < last; first += step {
		n := min(step, last-first)
		a.rows(s, first, n)
		if a.epilogue != nil {
			rows.Finish(a.y, first, n, a.epilogue)
		}
	}
	if last < hub {
		a.hub(s, last)
		if a.epilogue != nil {
			rows.Finish(a.y, last, 1, a.epilogue)
		}
	}
}

// rows sums rows of few entries.
func (a *aggregation) rows(s *scratch, first, n int) {
	indptr := a.cut.indptr[first : first+n+1]
	s.span.to(a.y, first)
	s.span.indptr, s.span.add = indptr, a.add
	a.entries(s, indptr[0], indptr[n])
	if a.mean {
		inverses(s.scale, indptr)
		s.span.scale = s.scale
	}
	a.e.sum(s)
}

// hub sums a row of many entries in pieces.
func (a *aggregation) hub(s *scratch, row int) {
	from, to := a.cut.indptr[row], a.cut.indptr[row+1]
	n := a.y.Cols
	s.span.y, s.span.yStride, s.span.cols = s.row, n, n
	s.span.scale, s.span.add = nil, false
	for at := from; at < to; at += a.cut.grain {
		end := min(at+a.cut.grain, to)
		s.ends = [2]int64{at, end}
		s.span.indptr, s.span.onward = s.ends[:], at > from
		a.entries(s, at, end)
		a.e.sum(s)
	}
	s.span.onward = false
	if n == 0 {
		return
	}
	y := a.y.F32()[row*a.y.Stride:][:n]
	if a.mean {
		share := 1 / float32(to-from)
		for j := range y {
			s.row[j] *= share
		}
	}
	for j, v := range s.row[:n] {
		if a.add {
			v += y[j]
		}
		y[j] = v
	}
}

// entries sets the indices and weights of these entries.
func (a *aggregation) entries(s *scratch, from, to int64) {
	s.span.indices = a.indices[from:a.cut.indptr[a.cut.rows()]]
	switch {
	case a.values == nil && a.share == nil:
		return
	case a.stand == nil:
		s.span.values = a.values[from-a.cut.indptr[0]:]
		return
	}
	n := int(to - from)
	w := s.weights[:n]
	s.span.values = s.weights
	switch {
	case a.share == nil:
		for i, at := range a.stand[from:to] {
			w[i] = a.values[at]
		}
	case a.values == nil:
		for i, row := range a.indices[from:to] {
			w[i] = a.share[row]
		}
	default:
		stand := a.stand[from:to]
		for i, row := range a.indices[from:to] {
			w[i] = a.values[stand[i]] * a.share[row]
		}
	}
}

// inverses computes 1 over the number of entries of each row.
func inverses(to []float32, indptr []int64) {
	for i := range len(indptr) - 1 {
		to[i] = 1 / float32(max(indptr[i+1]-indptr[i], 1))
	}
}

// shares computes the inverses of a whole graph.
type shares struct {
	e      *Edges
	indptr []int64
}

const sharesGrain = 1 << 14

// Do runs one chunk.
func (s *shares) Do(chunk, _ int) {
	from := chunk * sharesGrain
	to := min(from+sharesGrain, len(s.indptr)-1)
	inverses(s.e.inverse[from:to], s.indptr[from:to+1])
}

func (e *Edges) sharesOf(g *tensor.CSR) []float32 {
	e.inverse = grown(e.inverse, g.Rows)
	e.shares = shares{e, g.Indptr[:g.Rows+1]}
	e.pool.Run((g.Rows+sharesGrain-1)/sharesGrain, &e.shares)
	e.shares = shares{}
	return e.inverse
}
