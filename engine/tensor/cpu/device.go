// Package cpu implements tensor.Device on this machine's cores: memory, the operations on
// rows, losses and updates. Matrix products and aggregations along edges are in the
// packages below it.
package cpu

import (
	"fmt"
	"runtime"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/edges"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/gemm"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/workers"
)

// Device computes on the cores of this machine. It keeps scratch memory between
// operations, so that they allocate nothing.
type Device struct {
	*gemm.Gemm
	*edges.Edges
	pool *workers.Pool

	partial []float32 // sums of columns, of each chunk
	scratch []float32 // a row for each worker
	losses  []lossOf  // of each chunk

	zero       zeroTask
	combine    combineTask
	apply      applyTask
	applyBack  applyBackTask
	columnSums columnSumsTask
	gather     gatherTask
	scatterAdd scatterAddTask
	scaleRows  scaleRowsTask
	norm       normTask
	normBack   normBackTask
	max        maxTask
	maxBack    maxBackTask
	densify    densifyTask
	dropValues dropValuesTask
	finite     finiteTask
	loss       lossTask
	adam       adamTask
	sgd        sgdTask
}

var _ tensor.Device = (*Device)(nil)

// New starts this many workers, including the caller; 0 means GOMAXPROCS. Close ends
// them.
func New(threads int) *Device {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	pool := workers.New(threads)
	return &Device{Gemm: gemm.New(pool), Edges: edges.New(pool), pool: pool}
}

// Name implements tensor.Device.
func (d *Device) Name() string {
	if d.pool.Size() == 1 {
		return fmt.Sprintf("cpu (%s, 1 thread)", family.Current())
	}
	return fmt.Sprintf("cpu (%s, %d threads)", family.Current(), d.pool.Size())
}

// Type returns F32.
func (d *Device) Type() tensor.Type { return tensor.F32 }

// Close ends the workers. Arenas are closed separately.
func (d *Device) Close() { d.pool.Close() }

// run runs all chunks of a task. One or two run on the caller: sharing them would take
// longer.
func (d *Device) run(chunks int, t workers.Task) {
	if chunks > 2 {
		d.pool.Run(chunks, t)
		return
	}
	for c := range chunks {
		t.Do(c, 0)
	}
}

// partials returns uninitialised memory for the sums of so many columns, for each chunk,
// and the distance from one to the next.
func (d *Device) partials(chunks, cols int) ([]float32, int) {
	stride := (cols + 31) &^ 31
	if n := chunks * stride; n > len(d.partial) {
		d.partial = make([]float32, n+n/4)
	}
	return d.partial, stride
}

// must panics unless ok: a wrong shape is a bug of the caller.
func must(ok bool, says string) {
	if !ok {
		panic("cpu: " + says)
	}
}

// mustBe panics unless a matrix has this shape and type.
func mustBe(what string, m tensor.Matrix, t tensor.Type, rows, cols int) {
	if m.Rows != rows || m.Cols != cols || m.Type != t {
		panic(fmt.Sprintf("cpu: %s is %d x %d of %s and not %d x %d of %s", what, m.Rows, m.Cols, m.Type, rows, cols, t))
	}
}

// mustCompute panics unless the matrix is F32.
func mustCompute(m tensor.Matrix) { must(m.Type == tensor.F32, "what is computed is f32") }

// mustHave is mustBe for any type.
func mustHave(what string, m tensor.Matrix, rows, cols int) { mustBe(what, m, m.Type, rows, cols) }
