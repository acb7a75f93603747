package reference

import "github.com/hopmesh/hopmesh/engine/tensor"

// An entry is one edge.
type entry struct {
	at     int // position, from Indptr[0]
	source int
}

// entries returns those of row t, in order. Indptr holds absolute positions in Indices
// and Values: what comes before Indptr[0] does not belong to the CSR.
func entries(g *tensor.CSR, t int) []entry {
	var es []entry
	for at := g.Indptr[t]; at < g.Indptr[t+1]; at++ {
		s := int(g.Indices[at])
		must(s >= 0 && s < g.Cols, "column %d of %d", s, g.Cols)
		es = append(es, entry{int(at - g.Indptr[0]), s})
	}
	return es
}

// weights returns the weights of the entries by position.
func weights(g *tensor.CSR, values tensor.Matrix) []float64 {
	w := make([]float64, g.Entries())
	switch {
	case !values.None():
		mustBe("values", values, 1, len(w))
		copy(w, read(values).row(0))
	case g.Values != nil:
		for i := range w {
			w[i] = float64(g.Values[int(g.Indptr[0])+i])
		}
	default:
		for i := range w {
			w[i] = 1
		}
	}
	return w
}

// share returns the factor of each entry in a row of this many. A mean divides by the
// number of entries, whatever their weights.
func share(how tensor.Aggregation, entries int) float64 {
	if how == tensor.Mean {
		return 1 / float64(entries)
	}
	return 1
}

// Aggregate implements tensor.Aggregations. With add, the old values are not divided by
// Mean.
func (*Device) Aggregate(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue) {
	mustBe("y", y, g.Rows, x.Cols)
	must(x.Rows == g.Cols, "%d sources have %d rows", g.Cols, x.Rows)
	from, w, sum := read(x), weights(g, values), make([]float64, x.Cols)
	for t := range g.Rows {
		es := entries(g, t)
		clear(sum)
		for _, at := range es {
			for j, v := range from.row(at.source) {
				sum[j] += w[at.at] * v
			}
		}
		to := row(y, t)
		if !add {
			clear(to)
		}
		if len(es) > 0 {
			for j := range to {
				to[j] += sum[j] * share(how, len(es))
			}
		}
		finish(to, t, e)
	}
}

// AggregateBack implements tensor.Aggregations. It goes by rows and needs no Transposed.
func (d *Device) AggregateBack(dx tensor.Matrix, g *tensor.CSR, values, dy tensor.Matrix, how tensor.Aggregation, add bool) {
	mustBe("dx", dx, g.Cols, dy.Cols)
	must(dy.Rows == g.Rows, "%d targets have %d rows", g.Rows, dy.Rows)
	if !add {
		d.Zero(dx)
	}
	grad, w := read(dy), weights(g, values)
	for t := range g.Rows {
		es := entries(g, t)
		for _, e := range es {
			to := row(dx, e.source)
			for j, v := range grad.row(t) {
				to[j] += w[e.at] * share(how, len(es)) * v
			}
		}
	}
}

// AggregateMax implements tensor.Aggregations.
func (*Device) AggregateMax(y, which tensor.Matrix, g *tensor.CSR, x tensor.Matrix) {
	mustBe("y", y, g.Rows, x.Cols)
	mustBe("which", which, g.Rows, x.Cols)
	must(x.Rows == g.Cols, "%d sources have %d rows", g.Cols, x.Rows)
	from := read(x)
	for t := range g.Rows {
		to, w := row(y, t), chosen(which, t)
		clear(to)
		for j := range w {
			w[j] = -1
		}
		for _, e := range entries(g, t) {
			for j, v := range from.row(e.source) {
				if w[j] < 0 || v > to[j] {
					to[j], w[j] = v, int32(e.source)
				}
			}
		}
	}
}

// AggregateMaxBack implements tensor.Aggregations. A source with two entries in a row is
// chosen once.
func (d *Device) AggregateMaxBack(dx tensor.Matrix, g *tensor.CSR, dy, which tensor.Matrix, add bool) {
	mustBe("dx", dx, g.Cols, dy.Cols)
	mustBe("which", which, g.Rows, dy.Cols)
	must(dy.Rows == g.Rows, "%d targets have %d rows", g.Rows, dy.Rows)
	if !add {
		d.Zero(dx)
	}
	grad := read(dy)
	for t := range g.Rows {
		w := chosen(which, t)
		for j, v := range grad.row(t) {
			if w[j] >= 0 {
				row(dx, int(w[j]))[j] += v
			}
		}
	}
}

// Densify implements tensor.Rows. Duplicate entries are added up.
func (d *Device) Densify(y tensor.Matrix, g *tensor.CSR) {
	mustBe("y", y, g.Rows, g.Cols)
	d.Zero(y)
	w := weights(g, tensor.Matrix{})
	for t := range g.Rows {
		for _, e := range entries(g, t) {
			row(y, t)[e.source] += w[e.at]
		}
	}
}

// DropValues implements tensor.Rows.
func (*Device) DropValues(to, from tensor.Matrix, g *tensor.CSR, d tensor.Dropout) {
	mustBe("to", to, 1, g.Entries())
	mustBeOrNone("from", from, 1, g.Entries())
	out, in := row(to, 0), read(from)
	for t := range g.Rows {
		for _, e := range entries(g, t) {
			v := 1.0
			switch {
			case !from.None():
				v = in.row(0)[e.at]
			case g.Values != nil:
				v = float64(g.Values[g.Indptr[0]+int64(e.at)])
			}
			if d.P != 0 {
				v = drop(v, rowKey(d, t), e.source, d.P)
			}
			out[e.at] = v
		}
	}
}
