//go:build cuda

package device

import (
	"fmt"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/cuda/kernels"
	"github.com/hopmesh/hopmesh/cuda/ptx"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A module is a text of kernels that is loaded, with the sizes of their parameters.
type module struct {
	loaded  *driver.Module
	kernels map[string][]int
}

// load makes the kernels known by their names. Their parameters are those of the PTX;
// each launch is compared with them.
func (d *Device) load() error {
	for _, m := range kernels.Modules() {
		if m.Name == "primitives" {
			continue // for tests of what kernels are made of
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

// find makes kernels of this lane's of what is loaded: a launch uses memory of theirs.
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

// A launch's shape: blocks of 256 threads, 8 warps.
const (
	threads       = 256
	warpsOfBlock  = 8
	columnsOfWarp = 128
)

// A grid is how many blocks there are: along y and z at most mostAcross.
type grid [3]int

const mostAcross = 1<<16 - 1

// byRows is the launch of most kernels (rows.h): a warp a row and 128 columns.
func byRows(rows, cols int) grid {
	return grid{blocks(rows, warpsOfBlock), blocks(cols, columnsOfWarp), 1}
}

// foldedCols is how long the rows are that a longer one is cut into where columns don't
// matter: all weights of a model are one row, for which no grid is wide enough.
const foldedCols = 1 << 16

// folds says whether fold is for a matrix of this shape.
func folds(m tensor.Matrix) bool { return m.Rows == 1 && m.Cols > foldedCols }

// fold is such a row as rows of foldedCols, and what is left of it.
func fold(m tensor.Matrix) (rows, rest tensor.Matrix) {
	if m.None() {
		return m, m
	}
	n := m.Cols / foldedCols
	return m.View(0, 1, 0, n*foldedCols).Reshape(n, foldedCols), m.View(0, 1, n*foldedCols, m.Cols%foldedCols)
}

// blocks is a/b, rounded up.
func blocks(a, b int) int { return (a + b - 1) / b }

// launch hands a kernel over; a grid without blocks is nothing to do.
func (d *Device) launch(name string, g grid, arguments ...driver.Argument) {
	d.launchOf(name, g, threads, arguments...)
}

// launchOf is launch in blocks of so many threads.
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

// launchEnding is launch of a kernel whose last parameters are an epilogue's.
func (d *Device) launchEnding(name string, g grid, e ending, arguments ...driver.Argument) {
	d.arguments = append(append(d.arguments[:0], arguments...),
		e.bias.argument(), driver.Int32(int32(e.activation)), driver.Int64(int64(e.key)), e.vertices.argument(),
		driver.Int32(int32(e.threshold)), driver.Float32(e.scale))
	d.launch(name, g, d.arguments...)
}

// An ending is an epilogue as kernels take it (epilogue.h).
type ending struct {
	bias       address
	activation tensor.Activation
	key        keyed.Key
	vertices   address
	threshold  uint32
	scale      float32
}

// ending sends what e has on the host; nil does nothing. mustFit has seen it.
func (d *Device) ending(e *tensor.Epilogue, rows int) ending {
	if e == nil {
		return ending{scale: 1}
	}
	r := d.dropping(e.Dropout, rows)
	r.bias, r.activation = addressOf(e.Bias), e.Activation
	return r
}

// dropping is an ending of dropout alone, for the first so many vertices.
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

// An address is where something lies in the GPU's memory; 0 is nothing.
type address uint64

// plus is so many bytes on.
func (a address) plus(bytes int) address { return a + address(bytes) }

func (a address) argument() driver.Argument { return driver.Int64(int64(a)) }

// memory is what lies there.
func (a address) memory(bytes int) driver.Memory { return driver.MemoryAt(uint64(a), bytes) }

func addressOf(m tensor.Matrix) address { return address(uintptr(m.Base())) }

// at and stride are what kernels are given of a matrix, number is an int of C.
func at(m tensor.Matrix) driver.Argument     { return addressOf(m).argument() }
func stride(m tensor.Matrix) driver.Argument { return driver.Int64(int64(m.Stride)) }
func number(n int) driver.Argument           { return driver.Int32(int32(n)) }

func truth(b bool) driver.Argument {
	if b {
		return driver.Int32(1)
	}
	return driver.Int32(0)
}
