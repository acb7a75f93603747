//go:build cuda

package device

import (
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/cuda/kernels"
	"github.com/hopmesh/hopmesh/cuda/ptx"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// module is a loaded module of kernels, with the sizes of their parameters.
type module struct {
	loaded  *driver.Module
	kernels map[string][]int
}

// load loads the kernels. The sizes of their parameters come from the PTX, and each
// launch is checked against them.
func (d *Device) load() error {
	for _, m := range kernels.Modules() {
		if m.Name == "primitives" {
			continue // for tests that replace the kernels' source
		}
		parameters, err := ptx.Kernels(m.PTX)
		if err != nil {
			return fmt.Errorf("kernels %s: %w", m.Name, err)
		}
		loaded, err := d.on.Load(m.PTX)
		if err != nil {
			return fmt.Errorf("kernels %s: %w", m.Name, err)
		}
		d.modules = append(d.modules, module{loaded, parameters})
	}
	return d.find()
}

// unload frees the modules, which lanes use too. Their code takes memory of the GPU, which
// others of this process may be using.
func (d *Device) unload() (err error) {
	for _, m := range d.modules {
		err = errors.Join(err, d.on.Unload(m.loaded))
	}
	d.modules = nil
	return err
}

// find creates this lane's own kernels from the loaded modules, since a launch uses
// memory of its kernel.
func (d *Device) find() (err error) {
	for _, m := range d.modules {
		for name, sizes := range m.kernels {
			if d.kernels[name], err = d.on.Kernel(m.loaded, name, sizes...); err != nil {
				return err
			}
		}
	}
	return nil
}

// The shape of launches: blocks of 256 threads, 8 warps.
const (
	threads       = 256
	warpsOfBlock  = 8
	columnsOfWarp = 128
)

// grid is the number of blocks: along y and z at most mostAcross.
type grid [3]int

const mostAcross = 1<<16 - 1

// byRows returns the launch of most kernels (rows.h): a warp for each row and 128
// columns.
func byRows(rows, cols int) grid {
	return grid{blocks(rows, warpsOfBlock), blocks(cols, columnsOfWarp), 1}
}

// byLists returns the launch of kernels that take each consecutive lists of entries per
// warp (entries.h), and each. Several lists keep more rows in flight where lists are
// short, as long as there are enough for all warps of a large GPU. Results do not depend
// on it.
func byLists(lists, cols int) (g grid, each int) {
	each = 1
	if lists >= manyLists {
		each = listsOfWarp
	}
	return grid{blocks(lists, warpsOfBlock*each), blocks(cols, columnsOfWarp), 1}, each
}

const (
	manyLists   = 1 << 14
	listsOfWarp = 4
)

// rowsOfGather is the number of rows of a warp that gathers (gather.cu).
const rowsOfGather = 4

// foldedCols is the length of the rows into which a longer row is cut if columns don't
// matter. All weights of a model are one row, for which no grid is wide enough.
const foldedCols = 1 << 16

// folds reports whether a matrix of this shape is to be folded.
func folds(m tensor.Matrix) bool { return m.Rows == 1 && m.Cols > foldedCols }

// fold returns such a row as rows of foldedCols, and the rest.
func fold(m tensor.Matrix) (rows, rest tensor.Matrix) {
	if m.None() {
		return m, m
	}
	n := m.Cols / foldedCols
	return m.View(0, 1, 0, n*foldedCols).Reshape(n, foldedCols), m.View(0, 1, n*foldedCols, m.Cols%foldedCols)
}

// blocks returns a/b, rounded up.
func blocks(a, b int) int { return (a + b - 1) / b }

// launch records the launch of a kernel. A grid without blocks is ignored.
func (d *Device) launch(name string, g grid, arguments ...driver.Argument) {
	d.launchOf(name, g, threads, arguments...)
}

// launchOf is launch with blocks of the given number of threads.
func (d *Device) launchOf(name string, g grid, block int, arguments ...driver.Argument) {
	if g[0] == 0 || g[1] == 0 || g[2] == 0 || d.err != nil {
		return
	}
	if g[1] > mostAcross || g[2] > mostAcross {
		d.check(fmt.Errorf("kernel %s: %d x %d x %d blocks, and a GPU has at most %d along y and z", name, g[0], g[1], g[2], mostAcross))
		return
	}
	k, known := d.kernels[name]
	if !known {
		panic("device: there is no kernel " + name)
	}
	d.last = name
	d.tape.Record(k, driver.Shape{Grid: g, Block: [3]int{block, 1, 1}}, arguments...)
	if d.tape.Full() {
		d.flush()
	}
}

// launchEnding launches a kernel whose last parameters are an epilogue's.
func (d *Device) launchEnding(name string, g grid, e ending, arguments ...driver.Argument) {
	d.launchEndingOf(name, g, threads, e, arguments...)
}

// launchEndingOf is launchEnding with blocks of the given number of threads.
func (d *Device) launchEndingOf(name string, g grid, block int, e ending, arguments ...driver.Argument) {
	d.arguments = append(append(d.arguments[:0], arguments...),
		e.bias.argument(), driver.Int32(int32(e.activation)), driver.Int64(int64(e.key)), e.vertices.argument(),
		driver.Int32(int32(e.threshold)), driver.Float32(e.scale))
	d.launchOf(name, g, block, d.arguments...)
}

// ending is an epilogue in the form that kernels take (epilogue.h).
type ending struct {
	bias       address
	activation tensor.Activation
	key        keyed.Key
	vertices   address
	threshold  uint32
	scale      float32
}

// ending copies the host lists of e to the GPU; a nil e does nothing. mustFit must have
// checked e.
func (d *Device) ending(e *tensor.Epilogue, rows int) ending {
	if e == nil {
		return ending{scale: 1}
	}
	r := d.dropping(e.Dropout, rows)
	r.bias, r.activation = addressOf(e.Bias), e.Activation
	return r
}

// dropping returns an ending of dropout alone, for the first vertices.
func (d *Device) dropping(drop tensor.Dropout, vertices int) ending {
	if drop.P <= 0 {
		return ending{scale: 1}
	}
	e := ending{key: drop.Key, vertices: lent(d, drop.Vertices[:vertices]), threshold: keyed.Threshold(float64(drop.P))}
	if drop.P < 1 {
		e.scale = float32(1 / (1 - float64(drop.P)))
	}
	return e
}

// address is an address in the GPU's memory; 0 means none.
type address uint64

// plus returns the address that many bytes further.
func (a address) plus(bytes int) address { return a + address(bytes) }

func (a address) argument() driver.Argument { return driver.Int64(int64(a)) }

// memory returns the memory at the address.
func (a address) memory(bytes int) driver.Memory { return driver.MemoryAt(uint64(a), bytes) }

func addressOf(m tensor.Matrix) address { return address(uintptr(m.Base())) }

// at and stride return the kernel arguments for a matrix, and number that for a C int.
func at(m tensor.Matrix) driver.Argument     { return addressOf(m).argument() }
func stride(m tensor.Matrix) driver.Argument { return driver.Int64(int64(m.Stride)) }
func number(n int) driver.Argument           { return driver.Int32(int32(n)) }

func truth(b bool) driver.Argument {
	if b {
		return driver.Int32(1)
	}
	return driver.Int32(0)
}
