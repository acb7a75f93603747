package hgt

import (
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// The places of what is kept. Entries are ordered by relation and targets by type, as in a block of
// all relations together.
const (
	sources   = iota // rows of entries' sources
	keyed            // keys of entries, through the matrices of relations
	asked            // queries of entries' targets
	carried          // messages of entries
	scores           // of entries
	small            // see parts
	gathered         // see parts
	gatedRows        // two rows of each target: what its gate lets in, and its own row
)

// parts are matrices of targets that share memory, as a call keeps few.
type parts struct {
	stats      tensor.Matrix // of attention
	curveStats tensor.Matrix // of GELU
	gateStats  tensor.Matrix
	gates      tensor.Matrix // two scores of each target, the second 0
	sums       tensor.Matrix // two rows of each target: the sum of its messages, and zeros
	curved     tensor.Matrix // the sums after GELU
}

// matrices gives the parts their memory.
func (l *layer) matrices(c *nn.Call, small, gathered tensor.Matrix) (p parts) {
	n, at := c.Targets(), 0
	take := func(from tensor.Matrix, columns int) tensor.Matrix {
		m := from.View(0, 1, at, n*columns).Reshape(n, columns)
		at += n * columns
		return m
	}
	p.stats, p.curveStats = take(small, 2*l.heads), take(small, 2*l.columns)
	p.gateStats, p.gates = take(small, 2), take(small, 2)
	at = 0
	p.sums, p.curved = take(gathered, 2*l.columns), take(gathered, l.columns)
	return p
}

// halves returns the first and the second row of each two that stand side by side.
func halves(m tensor.Matrix) (first, second tensor.Matrix) {
	n := m.Cols / 2
	return m.View(0, m.Rows, 0, n), m.View(0, m.Rows, n, n)
}

// pairs returns rows that stand side by side as rows that follow each other.
func pairs(m tensor.Matrix) tensor.Matrix { return m.Reshape(2*m.Rows, m.Cols/2) }

// zeros returns a matrix of zeros.
func zeros(c *nn.Call, rows, columns int) tensor.Matrix {
	m := c.New(rows, columns)
	c.Device.Zero(m)
	return m
}

// pick computes y, a sum of two rows of each target weighted by the softmax of their scores, which is
// a sigmoid where one score is 0.
func pick(c *nn.Call, t *sample.Together, y, stats, x, left tensor.Matrix) {
	right := zeros(c, y.Rows, left.Cols/2)
	c.Device.Attend(y, stats, &t.Pairs, pairs(x), pairs(left), right, 1, tensor.Dropout{}, 0)
	c.Free(right)
}

// pickBack is its backward pass. It sets dx and dleft.
func pickBack(c *nn.Call, t *sample.Together, dx, dleft, dy, stats, x, left tensor.Matrix) {
	right, dright := zeros(c, dy.Rows, left.Cols/2), c.New(dy.Rows, left.Cols/2)
	c.Device.AttendBack(pairs(dx), pairs(dleft), dright, &t.Pairs, dy, stats, pairs(x), pairs(left), right, 1, tensor.Dropout{}, 0)
	c.Free(right, dright)
}

// typed returns the targets that have in-edges, by type, and the first of the others.
func typed(t *sample.Together) (kinds []int, others int) {
	kinds = t.Types[:len(t.Types)-1]
	return kinds, kinds[len(kinds)-1]
}

// tail returns the rows from one on.
func tail(m tensor.Matrix, first int) tensor.Matrix { return m.RowRange(first, m.Rows-first) }

// priors sets to to the vector of each relation by which the products of keys and queries count, and
// spread to what spreads a number of each head over its columns.
func (l *layer) priors(c *nn.Call) (to, spread tensor.Matrix) {
	to, spread = c.New(l.relations, l.columns), c.New(l.heads, l.columns)
	c.Device.Write(spread, l.spread)
	c.Device.MatMul(to, c.Weight(prior), spread, tensor.NN, false, nil)
	return to, spread
}

func (l *layer) Forward(c *nn.Call, y tensor.Matrix, e *tensor.Epilogue) {
	t, n := sample.TogetherOf(c.Block), c.Targets()
	entries := t.Sources.Rows
	kinds, others := typed(t)
	x, k, q, m, s := c.New(entries, l.columns), c.New(entries, l.columns), c.New(entries, l.columns), c.New(entries, l.columns), c.New(entries, l.heads)
	few, many, rows := c.New(1, n*(2*l.heads+2*l.columns+4)), c.New(1, n*3*l.columns), c.New(n, 2*l.columns)
	p := l.matrices(c, few, many)
	let, own := halves(rows)
	c.Device.Aggregate(own, &t.Order, none, c.Own(c.X()), tensor.Sum, false, nil)
	c.Device.Aggregate(x, &t.Sources, none, c.X(), tensor.Sum, false, nil)

	asks := c.New(n, l.columns)
	ranges(kinds, func(kind, first, rows int) {
		l.linear(c, asks.RowRange(first, rows), own.RowRange(first, rows), queries, kind)
	})
	c.Device.AggregateBack(q, &t.Targets, none, asks, tensor.Sum, false)
	c.Free(asks)
	by, spread := l.priors(c)
	to, products := c.New(l.columns+1, l.columns), c.New(entries, l.columns)
	ranges(t.Relations, func(relation, first, rows int) {
		l.mapped(c, k.RowRange(first, rows), x.RowRange(first, rows), to, keys, attention, relation)
		l.mapped(c, m.RowRange(first, rows), x.RowRange(first, rows), to, values, message, relation)
	})
	times(c, products, k, q)
	ranges(t.Relations, func(relation, first, rows int) {
		c.Device.HeadDot(s.RowRange(first, rows), products.RowRange(first, rows), by.RowRange(relation, 1))
	})
	c.Free(by, spread, to, products)

	sums, beside := halves(p.sums)
	right := zeros(c, n, l.heads)
	c.Device.Attend(sums, p.stats, &t.Targets, m, s, right, 1, tensor.Dropout{}, 0)
	c.Free(right)
	c.Device.Zero(beside)
	curves := c.New(n, 2*l.columns)
	c.Device.Combine(curves, steep, p.sums, 0, none)
	pick(c, t, p.curved, p.curveStats, p.sums, curves)
	c.Free(curves)

	ranges(kinds, func(kind, first, rows int) {
		l.linear(c, let.RowRange(first, rows), p.curved.RowRange(first, rows), output, kind)
	})
	// Both rows of a target without in-edges are its own, so that its gate has no say.
	c.Device.Combine(tail(let, others), 1, tail(own, others), 0, none)
	c.Device.Zero(p.gates)
	gates, _ := halves(p.gates)
	ranges(kinds, func(kind, first, rows int) {
		g := gates.RowRange(first, rows)
		c.Device.Apply(g, g, c.Epilogue(tensor.Epilogue{Bias: l.ofType(c.Weight(skip), kind)}))
	})
	ordered := c.New(n, l.columns)
	pick(c, t, ordered, p.gateStats, rows, p.gates)
	c.Device.AggregateBack(y, &t.Order, none, ordered, tensor.Sum, false)
	c.Free(ordered)
	if e != nil {
		c.Device.Apply(y, y, e)
	}
	c.Kept = [8]tensor.Matrix{sources: x, keyed: k, asked: q, carried: m, scores: s, small: few, gathered: many, gatedRows: rows}
}

// mapped computes y, rows of entries of a relation behind its map, which it makes in to.
func (l *layer) mapped(c *nn.Call, y, x, to tensor.Matrix, weight, by, relation int) {
	l.combine(c, to, weight, by, relation)
	w, bias := both(to)
	c.Device.MatMul(y, x, w, tensor.NN, false, c.Epilogue(tensor.Epilogue{Bias: bias}))
}

// mappedBack adds to dx, unless it is empty, and to the gradients of the map. It overwrites to.
func (l *layer) mappedBack(c *nn.Call, dx, dy, x, to tensor.Matrix, weight, by, relation int, add bool) {
	w, bias := both(to)
	if !dx.None() {
		l.combine(c, to, weight, by, relation)
		c.Device.MatMul(dx, dy, w, tensor.NT, add, nil)
	}
	c.Device.MatMul(w, x, dy, tensor.TN, false, nil)
	c.Device.Zero(bias)
	c.Device.ColumnSums(bias, dy)
	l.combineBack(c, to, weight, by, relation)
}

func (l *layer) Backward(c *nn.Call, dx, dy tensor.Matrix) {
	t, n := sample.TogetherOf(c.Block), c.Targets()
	p := l.matrices(c, c.Kept[small], c.Kept[gathered])
	rows := c.Kept[gatedRows]
	_, own := halves(rows)

	ordered, drows, dgates := c.New(n, l.columns), c.New(n, 2*l.columns), c.New(n, 2)
	c.Device.Aggregate(ordered, &t.Order, none, dy, tensor.Sum, false, nil)
	pickBack(c, t, drows, dgates, ordered, p.gateStats, rows, p.gates)
	c.Free(ordered)
	dlet, downHalf := halves(drows)
	down := c.New(n, l.columns)
	c.Device.Combine(down, 1, downHalf, 0, none)
	dsums := l.gateBack(c, t, p, dlet, down, dgates)
	c.Free(drows, dgates)

	dasked := l.attendBack(c, t, p, dx, dsums)
	c.Free(dsums)
	dasks := c.New(n, l.columns)
	c.Device.Aggregate(dasks, &t.Targets, none, dasked, tensor.Sum, false, nil)
	c.Free(dasked)
	kinds, _ := typed(t)
	ranges(kinds, func(kind, first, rows int) {
		l.linearBack(c, dasks.RowRange(first, rows), own.RowRange(first, rows), queries, kind)
		c.Device.MatMul(down.RowRange(first, rows), dasks.RowRange(first, rows), l.ofType(c.Weight(queries), kind), tensor.NT, true, nil)
	})
	if !dx.None() {
		c.Device.AggregateBack(c.Own(dx), &t.Order, none, down, tensor.Sum, true)
	}
	c.Free(dasks, down)
}

// gateBack goes back from the rows that gates let in to the sums of messages, whose gradient it
// returns. It adds to down what targets without in-edges have of their own row twice.
func (l *layer) gateBack(c *nn.Call, t *sample.Together, p parts, dlet, down, dgates tensor.Matrix) tensor.Matrix {
	n := c.Targets()
	kinds, others := typed(t)
	c.Device.Combine(tail(down, others), 1, tail(down, others), 1, tail(dlet, others))
	dcurved, gates := zeros(c, n, l.columns), dgates.View(0, n, 0, 1)
	ranges(kinds, func(kind, first, rows int) {
		d := dlet.RowRange(first, rows)
		c.Device.ColumnSums(l.ofType(c.Gradient(skip), kind), gates.RowRange(first, rows))
		l.linearBack(c, d, p.curved.RowRange(first, rows), output, kind)
		c.Device.MatMul(dcurved.RowRange(first, rows), d, l.ofType(c.Weight(output), kind), tensor.NT, false, nil)
	})
	curves, dboth, dcurves := c.New(n, 2*l.columns), c.New(n, 2*l.columns), c.New(n, 2*l.columns)
	c.Device.Combine(curves, steep, p.sums, 0, none)
	pickBack(c, t, dboth, dcurves, dcurved, p.curveStats, p.sums, curves)
	straight, _ := halves(dboth)
	bent, _ := halves(dcurves)
	dsums := c.New(n, l.columns)
	c.Device.Combine(dsums, 1, straight, steep, bent)
	c.Free(dcurved, curves, dboth, dcurves)
	return dsums
}

// attendBack goes back from the sums of messages to the rows of sources: it sets dx, unless that is
// empty, and returns the gradient at the queries of entries.
func (l *layer) attendBack(c *nn.Call, t *sample.Together, p parts, dx, dsums tensor.Matrix) tensor.Matrix {
	n, entries := c.Targets(), t.Sources.Rows
	x, k, q, m, s := c.Kept[sources], c.Kept[keyed], c.Kept[asked], c.Kept[carried], c.Kept[scores]
	dm, ds, dright, right := c.New(entries, l.columns), c.New(entries, l.heads), c.New(n, l.heads), zeros(c, n, l.heads)
	c.Device.AttendBack(dm, ds, dright, &t.Targets, dsums, p.stats, m, s, right, 1, tensor.Dropout{}, 0)
	c.Free(dright, right)
	products, dproducts := c.New(entries, l.columns), zeros(c, entries, l.columns)
	times(c, products, k, q)
	by, spread := l.priors(c)
	dby := zeros(c, l.relations, l.columns)
	ranges(t.Relations, func(relation, first, rows int) {
		c.Device.HeadDotBack(dproducts.RowRange(first, rows), dby.RowRange(relation, 1), ds.RowRange(first, rows), products.RowRange(first, rows), by.RowRange(relation, 1))
	})
	c.Device.MatMul(c.Gradient(prior), dby, spread, tensor.NT, true, nil)
	c.Free(by, spread, dby, ds)
	dk, dq := products, dproducts
	times(c, dk, dproducts, q)
	times(c, dq, dproducts, k)
	to, drow := c.New(l.columns+1, l.columns), none
	if !dx.None() {
		drow = c.New(entries, l.columns)
	}
	ranges(t.Relations, func(relation, first, rows int) {
		some := none
		if !dx.None() {
			some = drow.RowRange(first, rows)
		}
		l.mappedBack(c, some, dk.RowRange(first, rows), x.RowRange(first, rows), to, keys, attention, relation, false)
		l.mappedBack(c, some, dm.RowRange(first, rows), x.RowRange(first, rows), to, values, message, relation, true)
	})
	if !dx.None() {
		c.Device.AggregateBack(dx, &t.Sources, none, drow, tensor.Sum, false)
	}
	c.Free(dm, dk, to, drow)
	return dq
}
