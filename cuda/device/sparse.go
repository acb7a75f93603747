//go:build cuda

package device

import (
	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Densify implements tensor.Rows. Entries in the same place are added up.
func (d *Device) Densify(y tensor.Matrix, g *tensor.CSR) {
	mustBe("y", y, tensor.F32, g.Rows, g.Cols)
	if !d.begin() {
		return
	}
	defer d.end()
	e := d.entries(g)
	d.launch("densify", grid{blocks(g.Rows, warpsOfBlock), 1, 1}, at(y), stride(y), number(g.Rows), number(g.Cols),
		e.indptr.argument(), e.indices.argument(), e.values.argument())
}

// DropValues implements tensor.Rows.
func (d *Device) DropValues(to, from tensor.Matrix, g *tensor.CSR, drop tensor.Dropout) {
	mustBe("to", to, tensor.F32, 1, g.Entries())
	if !from.None() {
		mustBe("from", from, tensor.F32, 1, g.Entries())
	}
	must(drop.P <= 0 || len(drop.Vertices) >= g.Rows, "a row is dropped from and has no vertex")
	if !d.begin() {
		return
	}
	defer d.end()
	e, o := d.entries(g), d.dropping(drop, g.Rows)
	values := addressOf(from)
	if from.None() {
		values = e.own(g)
	}
	d.launch("drop_values", grid{blocks(g.Rows, warpsOfBlock), 1, 1}, at(to), values.argument(), number(g.Rows), e.indptr.argument(), e.indices.argument(),
		driver.Int64(int64(o.key)), o.vertices.argument(), driver.Int32(int32(o.threshold)), driver.Float32(o.scale))
}

// Aggregate implements tensor.Aggregations.
func (d *Device) Aggregate(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue) {
	mustBe("y", y, tensor.F32, g.Rows, x.Cols)
	mustHold("x", x, g.Cols, x.Cols)
	mustFit(e, y)
	if !values.None() {
		mustBe("values", values, tensor.F32, 1, g.Entries())
	}
	if !d.begin() {
		return
	}
	defer d.end()
	name := "aggregate_f32"
	if x.Type == tensor.BF16 {
		name = "aggregate_bf16"
	}
	c := d.entries(g)
	shape, each := byLists(y.Rows, y.Cols)
	d.launchEnding(name, shape, d.ending(e, y.Rows), at(y), stride(y), number(y.Rows), number(y.Cols), number(each),
		c.indptr.argument(), c.indices.argument(), weights(g, values, c).argument(), at(x), stride(x), truth(how == tensor.Mean), truth(add))
}

// AggregateBack implements tensor.Aggregations.
func (d *Device) AggregateBack(dx tensor.Matrix, g *tensor.CSR, values, dy tensor.Matrix, how tensor.Aggregation, add bool) {
	mustBe("dx", dx, tensor.F32, g.Cols, dy.Cols)
	mustBe("dy", dy, tensor.F32, g.Rows, dy.Cols)
	must(g.Transposed != nil, "the way back needs the transposed graph")
	if !values.None() {
		mustBe("values", values, tensor.F32, 1, g.Entries())
	}
	if !d.begin() {
		return
	}
	defer d.end()
	var e entries
	weights := addressOf(values)
	if how == tensor.Mean || g.Valued() && values.None() {
		e = d.entries(g)
	}
	if values.None() {
		weights = e.own(g)
	}
	c := d.columns(g)
	shape, each := byLists(dx.Rows, dx.Cols)
	d.launch("aggregate_back", shape, at(dx), stride(dx), number(dx.Rows), number(dx.Cols), number(each),
		c.indptr.argument(), c.rows.argument(), c.edges.argument(), e.indptr.argument(), weights.argument(), at(dy), stride(dy),
		truth(how == tensor.Mean), truth(add))
}

// AggregateMax implements tensor.Aggregations.
func (d *Device) AggregateMax(y, which tensor.Matrix, g *tensor.CSR, x tensor.Matrix) {
	mustBe("y", y, tensor.F32, g.Rows, x.Cols)
	mustBe("which", which, tensor.I32, g.Rows, x.Cols)
	mustBe("x", x, tensor.F32, g.Cols, x.Cols)
	if !d.begin() {
		return
	}
	defer d.end()
	e := d.entries(g)
	d.launch("aggregate_max", byRows(y.Rows, y.Cols), at(y), stride(y), at(which), stride(which), number(y.Rows), number(y.Cols),
		e.indptr.argument(), e.indices.argument(), at(x), stride(x))
}

// AggregateMaxBack implements tensor.Aggregations.
func (d *Device) AggregateMaxBack(dx tensor.Matrix, g *tensor.CSR, dy, which tensor.Matrix, add bool) {
	mustBe("dx", dx, tensor.F32, g.Cols, dy.Cols)
	mustBe("dy", dy, tensor.F32, g.Rows, dy.Cols)
	mustBe("which", which, tensor.I32, g.Rows, dy.Cols)
	must(g.Transposed != nil, "the way back needs the transposed graph")
	if !d.begin() {
		return
	}
	defer d.end()
	c := d.columns(g)
	d.launch("aggregate_max_back", byRows(dx.Rows, dx.Cols), at(dx), stride(dx), number(dx.Rows), number(dx.Cols),
		c.indptr.argument(), c.rows.argument(), at(dy), stride(dy), at(which), stride(which), truth(add))
}
