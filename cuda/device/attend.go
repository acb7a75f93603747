//go:build cuda

package device

import (
	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// targetBytes is the memory per head of a target that the backward pass by sources needs
// (attend.h).
const targetBytes = 16

// mustAttend checks what the four attention operations have in common: y, or its
// gradient, and stats have the graph's rows, and x its columns.
func mustAttend(h heads, g *tensor.CSR, y, stats, x tensor.Matrix, drop tensor.Dropout, own int) {
	mustBe("x", x, tensor.F32, g.Cols, h.n*h.width)
	mustBe("y", y, tensor.F32, g.Rows, x.Cols)
	mustBe("stats", stats, tensor.F32, g.Rows, 2*h.n)
	must(drop.P <= 0 || len(drop.Vertices) >= max(g.Cols, own+g.Rows), "a weight is dropped and has no vertex")
}

// mustEnd checks Attend's scores at both ends, or their gradients.
func mustEnd(h heads, g *tensor.CSR, left, right tensor.Matrix) {
	mustBe("left", left, tensor.F32, g.Cols, h.n)
	mustBe("right", right, tensor.F32, g.Rows, h.n)
}

// mustScore checks the operands of AttendV2's scores, or their gradients.
func mustScore(g *tensor.CSR, x, to, a tensor.Matrix) {
	mustBe("to", to, tensor.F32, g.Rows, x.Cols)
	mustBe("a", a, tensor.F32, 1, x.Cols)
}

// Attend implements tensor.Attentions.
func (d *Device) Attend(y, stats tensor.Matrix, g *tensor.CSR, x, left, right tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	h := headsOf(x, left.Cols)
	mustAttend(h, g, y, stats, x, drop, own)
	mustEnd(h, g, left, right)
	if !d.begin() {
		return
	}
	defer d.end()
	e, o := d.entries(g), d.dropping(drop, max(g.Cols, own+g.Rows))
	d.launchDropping("attend", h.tiled(g.Rows, warpsOfBlock), o, own, at(y), stride(y), at(stats), stride(stats),
		number(g.Rows), number(h.n), number(h.width), number(h.group), e.indptr.argument(), e.indices.argument(), at(x), stride(x),
		at(left), stride(left), at(right), stride(right), driver.Float32(slope))
}

// AttendBack implements tensor.Attentions.
func (d *Device) AttendBack(dx, dleft, dright tensor.Matrix, g *tensor.CSR, dy, stats, x, left, right tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	h := headsOf(x, left.Cols)
	mustAttend(h, g, dy, stats, x, drop, own)
	mustEnd(h, g, left, right)
	mustEnd(h, g, dleft, dright)
	mustBe("dx", dx, tensor.F32, x.Rows, x.Cols)
	must(g.Transposed != nil, "the way back needs the transposed graph")
	if !d.begin() {
		return
	}
	defer d.end()
	e, c, o := d.entries(g), d.columns(g), d.dropping(drop, max(g.Cols, own+g.Rows))
	known := d.room(targetBytes * h.n * g.Rows)
	d.launchDropping("attend_back_targets", h.grid(g.Rows), o, own, known.argument(), at(dright), stride(dright),
		number(g.Rows), number(h.n), number(h.width), number(h.group), e.indptr.argument(), e.indices.argument(), at(dy), stride(dy),
		at(stats), stride(stats), at(x), stride(x), at(left), stride(left), at(right), stride(right), driver.Float32(slope))
	d.launchDropping("attend_back_sources", h.tiled(g.Cols, warpsOfBlock), o, own, at(dx), stride(dx), at(dleft), stride(dleft),
		number(g.Cols), number(h.n), number(h.width), number(h.group), c.indptr.argument(), c.rows.argument(), known.argument(),
		at(dy), stride(dy), at(x), stride(x), at(left), stride(left), driver.Float32(slope))
}

// AttendV2 implements tensor.Attentions.
func (d *Device) AttendV2(y, stats tensor.Matrix, g *tensor.CSR, x, to, a tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	h := headsOf(x, stats.Cols/2)
	mustAttend(h, g, y, stats, x, drop, own)
	mustScore(g, x, to, a)
	if !d.begin() {
		return
	}
	defer d.end()
	e, o := d.entries(g), d.dropping(drop, max(g.Cols, own+g.Rows))
	d.launchDropping("attend_v2", h.tiled(g.Rows, warpsOfBlock), o, own, at(y), stride(y), at(stats), stride(stats),
		number(g.Rows), number(h.n), number(h.width), number(h.group), e.indptr.argument(), e.indices.argument(), at(x), stride(x),
		at(to), stride(to), at(a), driver.Float32(slope))
}

// AttendV2Back implements tensor.Attentions.
func (d *Device) AttendV2Back(dx, dto, da tensor.Matrix, g *tensor.CSR, dy, stats, x, to, a tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	h := headsOf(x, stats.Cols/2)
	mustAttend(h, g, dy, stats, x, drop, own)
	mustScore(g, x, to, a)
	mustScore(g, x, dto, da)
	mustBe("dx", dx, tensor.F32, x.Rows, x.Cols)
	must(g.Transposed != nil, "the way back needs the transposed graph")
	if !d.begin() {
		return
	}
	defer d.end()
	e, c, o := d.entries(g), d.columns(g), d.dropping(drop, max(g.Cols, own+g.Rows))
	known := d.room(targetBytes * h.n * g.Rows)
	d.launchDropping("attend_v2_back_targets", h.tiled(g.Rows, warpsOfBlock), o, own, known.argument(), at(dto), stride(dto),
		number(g.Rows), number(h.n), number(h.width), number(h.group), e.indptr.argument(), e.indices.argument(), at(dy), stride(dy),
		at(stats), stride(stats), at(x), stride(x), at(to), stride(to), at(a), driver.Float32(slope))
	each, parts := sums(g.Cols)
	partial := d.room(4 * parts * x.Cols)
	d.launchDropping("attend_v2_back_sources", h.tiled(g.Cols, each), o, own, at(dx), stride(dx), partial.argument(),
		number(g.Cols), number(h.n), number(h.width), number(h.group), number(each), c.indptr.argument(), c.rows.argument(), known.argument(),
		at(dy), stride(dy), at(x), stride(x), at(to), stride(to), at(a), driver.Float32(slope))
	d.addPartials(da, partial, parts)
}
