package train

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// read is the features of some vertices.
func (i *inference) read(vertices []uint32) nn.Input {
	in := nn.Input{Vertices: vertices}
	if i.data.features.Sparse() {
		i.data.features.Fill(&i.sparse, vertices, false)
		in.Sparse = &i.sparse.CSR
		return in
	}
	in.Dense = i.work.Alloc(i.device.Type(), len(vertices), i.data.features.Columns())
	i.data.features.Dense(i.device, i.work, in.Dense, vertices)
	return in
}

// rowsOf is the rows of a part in a table: those of the block's sources or, without
// a block, the range from first on that is in hand.
func (i *inference) rowsOf(t *table, first int, block *sample.Block) tensor.Matrix {
	if t == nil || t.x.None() {
		return tensor.Matrix{}
	}
	if block == nil {
		return t.x.RowRange(first, len(i.ids))
	}
	y := i.work.Alloc(i.device.Type(), block.Cols, t.x.Cols)
	i.device.Gather(y, []tensor.Part{{X: t.x}}, block.Vertices)
	return y
}

// wholeBytes is about what parts over the whole graph take.
func (i *inference) wholeBytes(stages int) uint64 {
	n, edges := uint64(i.data.topology.Vertices()), uint64(i.data.topology.Edges())
	bytes := 4*n + i.inputBytes(n)
	convolves := false
	largest := uint64(0)
	for s, stage := range i.stages[:stages] {
		largest = max(largest, i.wholeStage(s))
		convolves = convolves || stage.Hops > 0
	}
	bytes += largest * uint64(min(stages, len(whole{}.lanes))) // any lane may have it
	if !convolves {
		return bytes
	}
	if edges+n > math.MaxInt32 {
		return math.MaxUint64 // more than one block holds
	}
	return bytes + 16*n + 8*(edges+n)
}

// wholeStage is what a stage takes over the whole graph.
func (i *inference) wholeStage(s int) uint64 {
	n, edges := uint64(i.data.topology.Vertices()), uint64(i.data.topology.Edges())
	const ends = 1 << 12 // of matrices, which begin at whole lines
	return i.costOf[s].bytes(n, n, edges+n) + ends
}

// takes is about what inference takes of the memory that it may.
func (i *inference) takes(stages int) uint64 {
	if whole := i.wholeBytes(stages); whole <= i.memory {
		return whole
	}
	if tables := i.tableBytes(stages); tables <= i.memory/2 {
		return tables + i.partBytes()
	}
	return i.partBytes()
}

// least is what inference can do with: twice the part of one grain that takes most,
// or the whole.
func (i *inference) least(stages int) (most uint64) {
	n := i.data.topology.Vertices()
	for first := 0; first < n; first += grain {
		rows, edges := min(grain, n-first), 0
		for v := first; v < first+rows; v++ {
			edges += i.data.topology.Degree(v)
		}
		for s := range i.stages[:stages] {
			most = max(most, i.costs(s, rows, edges))
		}
	}
	return min(2*most, i.wholeBytes(stages))
}

// inputBytes is what the features of so many vertices take, on average.
func (i *inference) inputBytes(vertices uint64) uint64 {
	if i.data.features.Sparse() {
		return 8*vertices + uint64(float64(vertices)*8*i.data.entries)
	}
	return 4 * vertices * uint64(i.data.features.Columns())
}

// tableBytes is what the largest tables take that are needed at once.
func (i *inference) tableBytes(stages int) uint64 {
	most := 0
	for _, s := range i.stages[:max(0, stages-1)] {
		most = max(most, s.In+s.CarryIn+s.Out+s.CarryOut)
	}
	return uint64(most) * 4 * uint64(i.data.topology.Vertices())
}

// partBytes is what one part may take.
func (i *inference) partBytes() uint64 { return i.memory / 2 }

// part is how many vertices from first on a stage does at once: as many grains as
// memory allows, and one at least.
func (i *inference) part(s, first int) int {
	stage, n := &i.stages[s], i.data.topology.Vertices()
	edges, rows := 0, 0
	for rows < n-first {
		end := min(first+rows+grain, n)
		for v := first + rows; stage.Hops > 0 && v < end; v++ {
			edges += i.data.topology.Degree(v)
		}
		if rows > 0 && i.costs(s, end-first, edges) > i.partBytes() {
			break
		}
		rows = end - first
	}
	return rows
}

// costs is about what a part of so many vertices takes, at most: all sources of its
// edges may be different.
func (i *inference) costs(s, rows, edges int) uint64 {
	stage := &i.stages[s]
	targets, all := uint64(rows), uint64(i.data.topology.Vertices())
	sources := targets
	if stage.Hops > 0 {
		sources = min(all, targets+uint64(edges))
	}
	bytes := i.costOf[s].bytes(sources, targets, uint64(edges)) + 8*uint64(edges) + 24*sources
	if s == 0 {
		return bytes + i.inputBytes(sources)
	}
	return bytes + 4*sources*uint64(stage.In+stage.CarryIn)
}
