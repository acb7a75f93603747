//go:build cuda

package sample

import (
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/cuda/driver"
)

// Rows is a matrix in the GPU's memory.
type Rows struct {
	At     driver.Memory
	Stride int // in elements
	Cols   int
	BF16   bool // otherwise float32
}

var errRows = errors.New("rows that are not what Mean takes")

// Mean sets row t of y to the mean over the neighbours that the outermost hop samples for
// vertex t of b's, or, if mean is false, to the sum weighted by the form's values. x has
// the features of all vertices, by id. y is float32 and has a row for each of b's Inputs.
// Mean runs in the sampler's stream and does not wait.
func (s *Sampler) Mean(on *driver.Thread, b *Batch, y, x Rows, mean bool) error {
	size, kernel := 4, s.drawMean
	if x.BF16 {
		size, kernel = 2, s.drawMeanBF16
	}
	switch {
	case !s.o.Fused:
		return fmt.Errorf("%w: the sampler makes a block of each hop", errRows)
	case y.BF16 || y.Cols != x.Cols || !y.holds(b.Inputs, 4) || !x.holds(s.graph.vertices, size):
		return fmt.Errorf("%w: %d of %d columns from %d of %d", errRows, b.Inputs, y.Cols, s.graph.vertices, x.Cols)
	case b.Inputs == 0 || x.Cols == 0:
		return nil
	}
	hop, g, whole := len(s.entries), &s.graph, driver.Int32(0)
	if mean {
		whole = driver.Int32(1)
	}
	valued := driver.Int32(0)
	if s.o.Form.Weighting != 0 {
		valued = driver.Int32(1)
	}
	shape := driver.Shape{Grid: [3]int{warps(b.Inputs), (x.Cols + 127) / 128, 1}, Block: [3]int{ofBlock, 1, 1}, Stream: s.stream}
	return on.Launch(kernel, shape, y.At.Argument(), driver.Int64(int64(y.Stride)), driver.Int32(int32(x.Cols)),
		b.word(verticesWord(hop)), b.vertices.Argument(),
		g.indptr.Argument(), g.indices.Argument(), g.weights.Argument(), g.loops.Argument(), g.inverse.Argument(),
		driver.Int32(int32(s.o.Fanouts[hop])), b.word(s.layout().keyWord(hop)), x.At.Argument(), driver.Int64(int64(x.Stride)), whole, valued)
}

// holds reports whether the matrix has n rows of elements of this size.
func (r Rows) holds(n, size int) bool {
	return n == 0 || r.Cols >= 0 && r.Stride >= r.Cols && ((n-1)*r.Stride+r.Cols)*size <= r.At.Len()
}
