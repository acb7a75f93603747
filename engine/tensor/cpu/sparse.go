package cpu

import (
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/rows"
)

type gatherTask struct {
	cut
	y     tensor.Matrix
	parts []tensor.Part
	ids   []uint32
}

func (t *gatherTask) Do(chunk, _ int) {
	first, n := t.at(chunk)
	rows.Gather(t.y.RowRange(first, n), t.parts, t.ids[first:first+n])
}

// Gather implements tensor.Rows. The parts must ascend by First.
func (d *Device) Gather(y tensor.Matrix, parts []tensor.Part, ids []uint32) {
	must(len(ids) == y.Rows, "there are as many ids as rows to gather")
	for i := range parts {
		must(parts[i].X.Cols == y.Cols, "a part has the columns that are gathered")
	}
	t := &d.gather
	*t = gatherTask{byRows(y.Rows, y.Cols, grain), y, parts, ids}
	d.run(t.chunks, t)
	*t = gatherTask{}
}

// scatterRanges is the number of ranges of rows that are added to separately. Each scans
// all of rows.
const scatterRanges = 16

// scatterAddTask is divided by rows of y, since a row may occur twice: everything added
// to it is in one chunk, in order.
type scatterAddTask struct {
	cut
	y, x tensor.Matrix
	rows []int32
}

func (t *scatterAddTask) Do(chunk, _ int) {
	first, n := t.at(chunk)
	rows.ScatterAdd(t.y, t.x, t.rows, first, n)
}

// ScatterAdd implements tensor.Rows.
func (d *Device) ScatterAdd(y, x tensor.Matrix, rows []int32) {
	mustCompute(y)
	mustBe("x", x, tensor.F32, len(rows), y.Cols)
	for _, r := range rows {
		must(uint(r) < uint(y.Rows), "a row that is added to exists")
	}
	if y.Cols == 0 {
		return
	}
	t := &d.scatterAdd
	*t = scatterAddTask{cut{rows: y.Rows, cols: y.Cols, grain: max(1, y.Rows), chunks: min(1, len(rows))}, y, x, rows}
	if len(rows)*y.Cols > grain {
		t.grain = (y.Rows + scatterRanges - 1) / scatterRanges
		t.chunks = (y.Rows + t.grain - 1) / t.grain
	}
	d.run(t.chunks, t)
	*t = scatterAddTask{}
}

type densifyTask struct {
	cut
	y tensor.Matrix
	g *tensor.CSR
}

func (t *densifyTask) Do(chunk, _ int) {
	first, n := t.at(chunk)
	rows.Densify(t.y, t.g, first, n)
}

// Densify implements tensor.Rows. Duplicate entries add up.
func (d *Device) Densify(y tensor.Matrix, g *tensor.CSR) {
	mustBe("y", y, tensor.F32, g.Rows, g.Cols)
	t := &d.densify
	*t = densifyTask{byRows(y.Rows, y.Cols, grain), y, g}
	d.run(t.chunks, t)
	*t = densifyTask{}
}

type dropValuesTask struct {
	cut
	to, from tensor.Matrix
	g        *tensor.CSR
	dropout  tensor.Dropout
}

func (t *dropValuesTask) Do(chunk, _ int) {
	first, n := t.at(chunk)
	rows.DropValues(t.to, t.from, t.g, first, n, t.dropout)
}

// DropValues implements tensor.Rows.
func (d *Device) DropValues(to, from tensor.Matrix, g *tensor.CSR, dropout tensor.Dropout) {
	mustBe("to", to, tensor.F32, 1, g.Entries())
	if !from.None() {
		mustBe("from", from, tensor.F32, 1, g.Entries())
	}
	if from.None() && g.Values != nil {
		from = tensor.OverF32(1, g.Entries(), g.Values[g.Indptr[0]:g.Indptr[g.Rows]])
	}
	must(dropout.P <= 0 || len(dropout.Vertices) >= g.Rows, "a row is dropped from and has no vertex")
	t := &d.dropValues
	*t = dropValuesTask{byRows(g.Rows, g.Entries()/max(1, g.Rows)+1, lossGrain), to, from, g, dropout}
	d.run(t.chunks, t)
	*t = dropValuesTask{}
}
