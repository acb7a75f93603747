package cpu

import (
	"sync/atomic"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/rows"
)

type zeroTask struct {
	cut
	m tensor.Matrix
}

func (t *zeroTask) Do(chunk, _ int) { rows.Zero(t.of(t.m, chunk)) }

// Zero implements tensor.Rows.
func (d *Device) Zero(m tensor.Matrix) {
	t := &d.zero
	*t = zeroTask{byElements(m), m}
	d.run(t.chunks, t)
	*t = zeroTask{}
}

type combineTask struct {
	cut
	y, a, b     tensor.Matrix
	alpha, beta float64
}

func (t *combineTask) Do(chunk, _ int) {
	rows.Combine(t.of(t.y, chunk), t.alpha, t.of(t.a, chunk), t.beta, t.of(t.b, chunk))
}

// Combine implements tensor.Rows.
func (d *Device) Combine(y tensor.Matrix, alpha float64, a tensor.Matrix, beta float64, b tensor.Matrix) {
	mustHave("a", a, y.Rows, y.Cols)
	if !b.None() {
		mustHave("b", b, y.Rows, y.Cols)
	}
	t := &d.combine
	*t = combineTask{byElements(y, a, b), y, a, b, alpha, beta}
	d.run(t.chunks, t)
	*t = combineTask{}
}

// Write implements tensor.Device.
func (d *Device) Write(m tensor.Matrix, from []float64) {
	must(len(from) == m.Rows*m.Cols, "as many numbers are written as the matrix has elements")
	d.Combine(m, 1, tensor.Over(tensor.F64, m.Rows, m.Cols, m.Cols, unsafe.Pointer(unsafe.SliceData(from))), 0, tensor.Matrix{})
}

// Read implements tensor.Device.
func (d *Device) Read(to []float64, m tensor.Matrix) {
	must(len(to) == m.Rows*m.Cols, "as many numbers are read as the matrix has elements")
	d.Combine(tensor.Over(tensor.F64, m.Rows, m.Cols, m.Cols, unsafe.Pointer(unsafe.SliceData(to))), 1, m, 0, tensor.Matrix{})
}

// Write32 implements tensor.Device.
func (d *Device) Write32(m tensor.Matrix, from []float32) {
	d.Combine(m, 1, tensor.OverF32(m.Rows, m.Cols, from), 0, tensor.Matrix{})
}

// Read32 implements tensor.Device.
func (d *Device) Read32(to []float32, m tensor.Matrix) {
	d.Combine(tensor.OverF32(m.Rows, m.Cols, to), 1, m, 0, tensor.Matrix{})
}

type scaleRowsTask struct {
	cut
	y, x, scale tensor.Matrix
}

func (t *scaleRowsTask) Do(chunk, _ int) {
	rows.ScaleRows(t.of(t.y, chunk), t.of(t.x, chunk), t.of(t.scale, chunk))
}

// ScaleRows implements tensor.Rows.
func (d *Device) ScaleRows(y, x, scale tensor.Matrix) {
	mustCompute(y)
	mustBe("x", x, tensor.F32, y.Rows, y.Cols)
	mustBe("scale", scale, tensor.F32, y.Rows, 1)
	t := &d.scaleRows
	*t = scaleRowsTask{byRows(y.Rows, y.Cols, grain), y, x, scale}
	d.run(t.chunks, t)
	*t = scaleRowsTask{}
}

type maxTask struct {
	cut
	y, which, x tensor.Matrix
	index       int
	first       bool
}

func (t *maxTask) Do(chunk, _ int) {
	rows.Max(t.of(t.y, chunk), t.of(t.which, chunk), t.of(t.x, chunk), t.index, t.first)
}

// Max implements tensor.Rows.
func (d *Device) Max(y, which, x tensor.Matrix, index int, first bool) {
	mustCompute(y)
	mustBe("which", which, tensor.I32, y.Rows, y.Cols)
	mustBe("x", x, tensor.F32, y.Rows, y.Cols)
	t := &d.max
	*t = maxTask{byElements(y, which, x), y, which, x, index, first}
	d.run(t.chunks, t)
	*t = maxTask{}
}

type maxBackTask struct {
	cut
	dx, dy, which tensor.Matrix
	index         int
}

func (t *maxBackTask) Do(chunk, _ int) {
	rows.MaxBack(t.of(t.dx, chunk), t.of(t.dy, chunk), t.of(t.which, chunk), t.index)
}

// MaxBack implements tensor.Rows.
func (d *Device) MaxBack(dx, dy, which tensor.Matrix, index int) {
	mustCompute(dx)
	mustBe("dy", dy, tensor.F32, dx.Rows, dx.Cols)
	mustBe("which", which, tensor.I32, dx.Rows, dx.Cols)
	t := &d.maxBack
	*t = maxBackTask{byElements(dx, dy, which), dx, dy, which, index}
	d.run(t.chunks, t)
	*t = maxBackTask{}
}

type finiteTask struct {
	cut
	m   tensor.Matrix
	bad atomic.Bool
}

func (t *finiteTask) Do(chunk, _ int) {
	if !t.bad.Load() && !rows.Finite(t.of(t.m, chunk)) {
		t.bad.Store(true)
	}
}

// Finite implements tensor.Rows.
func (d *Device) Finite(m tensor.Matrix) bool {
	t := &d.finite
	t.cut, t.m = byElements(m), m
	t.bad.Store(false)
	d.run(t.chunks, t)
	t.m = tensor.Matrix{}
	return !t.bad.Load()
}
