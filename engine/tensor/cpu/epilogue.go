package cpu

import (
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/rows"
)

type applyTask struct {
	cut
	y, x tensor.Matrix
	e    *tensor.Epilogue
}

func (t *applyTask) Do(chunk, _ int) {
	first, n := t.at(chunk)
	rows.Apply(t.y, t.x, first, n, t.e)
}

// Apply implements tensor.Rows.
func (d *Device) Apply(y, x tensor.Matrix, e *tensor.Epilogue) {
	mustCompute(y)
	mustBe("x", x, tensor.F32, y.Rows, y.Cols)
	mustFit(e, y)
	t := &d.apply
	*t = applyTask{byRows(y.Rows, y.Cols, grain), y, x, e}
	d.run(t.chunks, t)
	*t = applyTask{}
}

// mustFit checks an epilogue's shapes.
func mustFit(e *tensor.Epilogue, y tensor.Matrix) {
	if e == nil {
		return
	}
	if !e.Bias.None() {
		mustBe("the bias", e.Bias, tensor.F32, 1, y.Cols)
	}
	must(e.Dropout.P <= 0 || len(e.Dropout.Vertices) >= y.Rows, "a row is dropped from and has no vertex")
}

type applyBackTask struct {
	cut
	dx, dy, y tensor.Matrix
	e         *tensor.Epilogue
	partial   []float32 // nil: no sums
	stride    int
}

func (t *applyBackTask) Do(chunk, _ int) {
	first, n := t.at(chunk)
	var sums []float32
	if t.partial != nil {
		sums = t.partial[chunk*t.stride:][:t.cols]
		clear(sums)
	}
	rows.ApplyBack(t.dx, sums, t.dy, t.y, first, n, t.e)
}

// ApplyBack implements tensor.Rows.
func (d *Device) ApplyBack(dx, dbias, dy, y tensor.Matrix, e *tensor.Epilogue) {
	mustCompute(dx)
	mustBe("dy", dy, tensor.F32, dx.Rows, dx.Cols)
	mustBe("y", y, tensor.F32, dx.Rows, dx.Cols)
	if e != nil {
		must(e.Dropout.P <= 0 || len(e.Dropout.Vertices) >= dx.Rows, "a row is dropped from and has no vertex")
	}
	t := &d.applyBack
	*t = applyBackTask{cut: byRows(dx.Rows, dx.Cols, grain), dx: dx, dy: dy, y: y, e: e}
	if !dbias.None() {
		mustBe("dbias", dbias, tensor.F32, 1, dx.Cols)
		t.partial, t.stride = d.partials(t.chunks, t.cols)
	}
	d.run(t.chunks, t)
	if !dbias.None() {
		rows.AddPartials(dbias, t.partial, t.stride, t.chunks)
	}
	*t = applyBackTask{}
}

type columnSumsTask struct {
	cut
	x       tensor.Matrix
	partial []float32
	stride  int
}

func (t *columnSumsTask) Do(chunk, _ int) {
	sums := t.partial[chunk*t.stride:][:t.cols]
	clear(sums)
	rows.ColumnSums(sums, t.of(t.x, chunk))
}

// ColumnSums implements tensor.Rows.
func (d *Device) ColumnSums(sums, x tensor.Matrix) {
	mustCompute(x)
	mustBe("sums", sums, tensor.F32, 1, x.Cols)
	t := &d.columnSums
	*t = columnSumsTask{cut: byRows(x.Rows, x.Cols, grain), x: x}
	t.partial, t.stride = d.partials(t.chunks, t.cols)
	d.run(t.chunks, t)
	rows.AddPartials(sums, t.partial, t.stride, t.chunks)
	*t = columnSumsTask{}
}
