package program

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/train"
)

// along is what edges have beside their ends.
type along struct {
	relations int // that there are
	weighted  bool
	columns   int // of features
}

// alongOf returns what the edges of a run have.
func alongOf(t *train.Trainer) along {
	f := t.Learners[0].Model.Form()
	return along{f.Relations, f.Weighting == sample.Own, f.EdgeFeatures}
}

// edges is where the edges of a batch are written. What they don't have is nil.
type edges struct {
	sources, targets, types []int64
	weights, rows           []float32
	columns                 int // of rows
}

// edgesIn returns where the edges of a batch go in its memory.
func (l *layout) edgesIn(data []byte) edges {
	n := l.edges
	pairs := desk.Numbers[int64](data[l.pairs:][:16*n])
	e := edges{sources: pairs[:n], targets: pairs[n:], columns: l.along.columns}
	if l.relations > 0 {
		e.types = desk.Numbers[int64](data[l.types:][:8*n])
	}
	if l.weighted {
		e.weights = desk.Numbers[float32](data[l.weights:][:4*n])
	}
	if e.columns > 0 {
		e.rows = desk.Numbers[float32](data[l.rows:][:4*n*e.columns])
	}
	return e
}

// from returns the edges from the n-th on.
func (e edges) from(n int) edges {
	e.sources, e.targets = e.sources[n:], e.targets[n:]
	if e.types != nil {
		e.types = e.types[n:]
	}
	if e.weights != nil {
		e.weights = e.weights[n:]
	}
	if e.rows != nil {
		e.rows = e.rows[n*e.columns:]
	}
	return e
}

// write sets the edges of all hops, those of the seed vertices first. A hop draws for all
// vertices that were reached before, so that whoever computes a layer by each hop's edges gets the
// same sums however many nodes share the seed vertices. freshFirst is as in desk.Batch.
func (e edges) write(blocks []sample.Block, freshFirst bool) {
	n, end, before := 0, len(e.sources), 0
	for _, block := range slices.Backward(blocks) {
		if freshFirst {
			end -= int(block.Indptr[before] - block.Indptr[0])
			e.from(end).writeRows(&block, 0, before)
		} else {
			n += e.from(n).writeRows(&block, 0, before)
		}
		n += e.from(n).writeRows(&block, before, block.Rows)
		before = block.Rows
	}
}

// writeRows sets the edges of some targets, and returns how many there are.
func (e edges) writeRows(block *sample.Block, from, to int) (n int) {
	for t := from; t < to; t++ {
		row := block.Indices[block.Indptr[t]:block.Indptr[t+1]]
		of, at := e.sources[n:][:len(row)], e.targets[n:][:len(row)]
		for i, u := range row {
			of[i], at[i] = int64(u), int64(t)
		}
		n += len(row)
	}
	first := int(block.Indptr[from])
	if e.types != nil { // relations, which travel as weights do
		for i, x := range block.Values[first:][:n] {
			e.types[i] = int64(x)
		}
	}
	if e.weights != nil {
		copy(e.weights, block.Values[first:][:n])
	}
	if e.rows != nil {
		first -= int(block.Indptr[0])
		copy(e.rows, block.Along.Rows[first*e.columns:][:n*e.columns])
	}
	return n
}
