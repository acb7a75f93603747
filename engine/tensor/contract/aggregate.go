package contract

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// edged calls f with graphs of many shapes, with numbers of columns, and with F32 and
// BF16 features.
func (b *bench) edged(times int, values bool, f func(g *graph, cols int, x tensor.Type, name string)) {
	types := []tensor.Type{b.native(), b.native(), tensor.BF16}
	next := func(g *graph, cols int, kind string) {
		name := fmt.Sprintf("%s of %d x %d with %d entries from %d, values %v", kind, g.Rows, g.Cols, g.Entries(), g.Indptr[0], g.Values != nil)
		f(g, cols, types[b.below(3)], name)
	}
	for range times {
		next(b.graph(b.size(), b.size(), 1+b.below(40), values && b.coin()), b.size(), "graph")
	}
	next(b.graph(0, 9, 3, false), 16, "graph")
	next(b.graph(9, 0, 3, false), 16, "graph")
	next(b.withDegrees(5, make([]int, 33), values), 17, "graph without edges")
	// Rows and columns with enough entries that a device may split them.
	next(b.hubs(257, 100, 3001, values), 257, "hubs")
	next(b.hubs(3001, 700, 5003, values), 130, "hubs")
	next(b.hubs(4099, 1023, 9001, values), 17, "hubs")
	next(b.hubs(3, 4099, 33001, values), 3, "hubs")
	next(b.graph(6007, 3001, 12, values), 65, "graph")
}

// edgeValues returns values that replace a graph's own, or nil.
func (b *bench) edgeValues(g *graph) *operand {
	if b.below(3) > 0 {
		return nil
	}
	return b.in("values", b.native(), 1, g.Entries(), b.fine(g.Entries()))
}

func aggregates(b *bench) {
	aggregate := func(g *graph, cols int, x tensor.Type, how tensor.Aggregation, add bool, r recipe, name string) {
		title := fmt.Sprintf("Aggregate by %s, %s, %d columns of %s, add %v, %s", hows[how], name, cols, x, add, r)
		b.try(title, func() {
			from, values := b.in("x", x, g.Cols, cols, b.numbers(g.Cols*cols)), b.edgeValues(g)
			y, e := b.result("y", g.Rows, cols, add), b.ending(r, g.Rows, cols)
			y.slack = e.slack()
			b.terms(func(s side) {
				s.Aggregate(s.of(y), s.graph(g), s.of(values), s.of(from), how, add, s.epilogue(e))
			})
		})
	}
	for _, r := range recipes() {
		for _, how := range []tensor.Aggregation{tensor.Sum, tensor.Mean} {
			for _, add := range []bool{false, true} {
				g := b.graph(31, 33, 9, b.coin())
				aggregate(g, 47, b.native(), how, add, r, "graph of 31 x 33")
				aggregate(g, 65, tensor.BF16, how, add, r, "graph of 31 x 33")
			}
		}
	}
	b.edged(60, true, func(g *graph, cols int, x tensor.Type, name string) {
		aggregate(g, cols, x, tensor.Aggregation(b.below(2)), b.coin(), b.recipe(), name)
	})
}

var hows = [...]string{tensor.Sum: "sum", tensor.Mean: "mean"}

func aggregatesBack(b *bench) {
	b.edged(60, true, func(g *graph, cols int, _ tensor.Type, name string) {
		how, add := tensor.Aggregation(b.below(2)), b.coin()
		b.try(fmt.Sprintf("AggregateBack by %s, %s, %d columns, add %v", hows[how], name, cols, add), func() {
			dy, values := b.in("dy", b.native(), g.Rows, cols, b.fine(g.Rows*cols)), b.edgeValues(g)
			dx := b.result("dx", g.Cols, cols, add)
			b.terms(func(s side) {
				s.AggregateBack(s.of(dx), s.graph(g), s.of(values), s.of(dy), how, add)
			})
		})
	})
}

// densities tests Densify with distinct entries.
func densities(b *bench) {
	b.shaped(40, func(rows, cols int) {
		b.try(fmt.Sprintf("Densify, %d x %d", rows, cols), func() {
			g := b.graph(rows, cols, min(30, cols), b.coin())
			for r := range rows {
				spread(g.Indices[g.Indptr[r]:g.Indptr[r+1]], cols)
			}
			g.transpose()
			y := b.out("y", b.native(), rows, cols)
			b.both(func(s side) { s.Densify(s.of(y), s.graph(g)) })
		})
	})
}

// spread makes the columns of a row distinct; there must be no more entries than columns.
func spread(columns []int32, of int) {
	for i := range columns {
		columns[i] = int32(i * of / len(columns))
	}
}

func droppedValues(b *bench) {
	b.edged(40, true, func(g *graph, _ int, _ tensor.Type, name string) {
		p, given := []float32{0, .1, .5, .9}[b.below(4)], b.coin()
		b.try(fmt.Sprintf("DropValues, %s, dropout %v, from given: %v", name, p, given), func() {
			var from *operand
			if given {
				from = b.in("from", b.native(), 1, g.Entries(), b.fine(g.Entries()))
			}
			to, d := b.out("to", b.native(), 1, g.Entries()), b.dropout(p, g.Rows)
			b.both(func(s side) { s.DropValues(s.of(to), s.of(from), s.graph(g), d) })
		})
	})
}
