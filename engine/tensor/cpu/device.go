// Package cpu is this machine's cores as a tensor.Device: memory, the operations on
// rows, and losses and updates. Matrix products and what follows edges are in the
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

// Device is the cores of this machine. What an operation needs beside its operands
// is kept here between operations, so that they allocate nothing.
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

// New starts this many workers, the caller being one; 0 means as many as Go uses
// of this machine's cores. Close ends them.
func New(threads int) *Device {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	pool := workers.New(threads)
	return &Device{Gemm: gemm.New(pool), Edges: edges.New(pool), pool: pool}
}

// Name is as tensor.Device says.
func (d *Device) Name() string {
	if d.pool.Size() == 1 {
		return fmt.Sprintf("cpu (%s, 1 thread)", family.Current())
	}
	return fmt.Sprintf("cpu (%s, %d threads)", family.Current(), d.pool.Size())
}

// Type is F32.
func (d *Device) Type() tensor.Type { return tensor.F32 }

// Close ends the workers. Arenas are closed by themselves.
func (d *Device) Close() { d.pool.Close() }

// run does all chunks of a task. Two take less time than it takes to share them.
func (d *Device) run(chunks int, t workers.Task) {
	if chunks > 2 {
		d.pool.Run(chunks, t)
		return
	}
	for c := range chunks {
		t.Do(c, 0)
	}
}

// partials returns memory for the sums of so many columns, for each chunk; it is
// not cleared. The distance from one to the next is returned, too.
func (d *Device) partials(chunks, cols int) ([]float32, int) {
	stride := (cols + 31) &^ 31
	if n := chunks * stride; n > len(d.partial) {
		d.partial = make([]float32, n+n/4)
	}
	return d.partial, stride
}

// must panics: a wrong shape is a fault of the program.
func must(ok bool, says string) {
	if !ok {
		panic("cpu: " + says)
	}
}

// mustBe says what shape and type a matrix has to have.
func mustBe(what string, m tensor.Matrix, t tensor.Type, rows, cols int) {
	if m.Rows != rows || m.Cols != cols || m.Type != t {
		panic(fmt.Sprintf("cpu: %s is %d x %d of %s and not %d x %d of %s", what, m.Rows, m.Cols, m.Type, rows, cols, t))
	}
}

// mustCompute says that operations are in F32.
func mustCompute(m tensor.Matrix) { must(m.Type == tensor.F32, "what is computed is f32") }

// mustHave is mustBe of any type.
func mustHave(what string, m tensor.Matrix, rows, cols int) { mustBe(what, m, m.Type, rows, cols) }
