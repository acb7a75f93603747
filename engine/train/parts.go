package train

import (
	"context"
	"math"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// read is the features of some vertices, wherever they are.
func (i *inference) read(ctx context.Context, vertices []uint32) (nn.Input, error) {
	in := nn.Input{Vertices: vertices}
	places, far, err := i.places(ctx, vertices)
	if err != nil {
		return in, err
	}
	if i.data.features.Sparse() {
		i.data.features.Fill(&i.sparse, places, false, far)
		in.Sparse = &i.sparse.CSR
		return in, nil
	}
	in.Dense = i.work.Alloc(i.device.Type(), len(vertices), i.data.features.Columns())
	i.fill(in.Dense, places, far)
	return in, nil
}

// kept is what the features of the halo take, if they are kept: where they take no more
// than a quarter of the memory.
func (i *inference) kept() (bytes uint64, ok bool) {
	if i.halo == nil || i.stages[0].Hops == 0 {
		return 0, true
	}
	bytes = i.inputBytes(uint64(len(i.halo.ids)))
	if bytes > i.memory/4 {
		return 0, false
	}
	return bytes, true
}

// places is where the features of some vertices are. Those of the halo are brought once
// a run and kept or, where they are too many, brought each time.
func (i *inference) places(ctx context.Context, vertices []uint32) ([]uint32, *features.Far, error) {
	h := i.halo
	if h == nil || i.stages[0].Hops == 0 || len(h.ids) == 0 {
		return vertices, nil, nil
	}
	if _, ok := i.kept(); !ok {
		if err := h.gather(ctx, &i.far, vertices); err != nil {
			return nil, nil, err
		}
		return i.far.Places[0], &i.far.Far, nil
	}
	if err := h.features(ctx); err != nil {
		return nil, nil, err
	}
	near := 0
	i.rows = i.rows[:0]
	for _, v := range vertices {
		if row := h.row(v, &near); row >= i.own.rows {
			v = h.places[row-i.own.rows]
		}
		i.rows = append(i.rows, v)
	}
	return i.rows, &h.far.Far, nil
}

// rowsOf is the rows of a part in a table: those of the block's sources or, without
// a block, the range from first on that is in hand.
func (i *inference) rowsOf(t *table, first int, block *sample.Block) tensor.Matrix {
	if t == nil || t.x.None() {
		return tensor.Matrix{}
	}
	if block == nil {
		return i.rangeOf(t, first, len(i.ids))
	}
	rows := block.Vertices
	if i.halo != nil {
		near := 0
		i.rows = i.rows[:0]
		for _, v := range rows {
			i.rows = append(i.rows, uint32(i.halo.row(v, &near)))
		}
		rows = i.rows
	}
	y := i.work.Alloc(i.device.Type(), block.Cols, t.x.Cols)
	i.pick(y, t.x, rows)
	return y
}

// wholeBytes is about what parts over all vertices take.
func (i *inference) wholeBytes(stages int) uint64 {
	edges, sources := uint64(i.own.edges), uint64(i.sources())
	targets := uint64(i.own.rows)
	bytes := 4*sources + i.betweenNodes(stages)
	convolves := false
	largest, joined := uint64(0), uint64(0)
	for s, stage := range i.stages[:stages] {
		largest = max(largest, i.wholeStage(s))
		convolves = convolves || stage.Hops > 0
		if i.exchanged(s, stages) {
			joined = max(joined, 4*sources*uint64(stage.Out))
		}
	}
	bytes += joined + largest*uint64(min(stages, len(whole{}.lanes))) // any lane may have it
	if !i.hears() {
		bytes += i.inputBytes(targets)
	} else {
		bytes += i.inputBytes(sources)
	}
	if !convolves {
		return bytes
	}
	if edges+targets > math.MaxInt32 {
		return math.MaxUint64 // more than one block holds
	}
	return bytes + 16*sources + 8*(edges+targets)
}

// betweenNodes is what is kept of the rows that nodes bring each other.
func (i *inference) betweenNodes(stages int) (bytes uint64) {
	if i.halo == nil {
		return 0
	}
	for s := range i.stages[:stages] {
		if i.exchanged(s, stages) {
			bytes += uint64(i.halo.wants() * i.stages[s].Out)
		}
	}
	bytes += uint64(i.widest(stages) * len(i.halo.ids))
	return 4 * bytes
}

// wholeStage is what a stage takes over all vertices.
func (i *inference) wholeStage(s int) uint64 {
	targets, edges := uint64(i.own.rows), uint64(i.own.edges)
	const ends = 1 << 12 // of matrices, which begin at whole lines
	return i.costOf[s].bytes(uint64(i.sources()), targets, edges+targets) + ends
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
	for first := 0; first < i.own.rows; {
		end := i.own.end(first)
		edges := i.edges(first, end)
		for s := range i.stages[:stages] {
			most = max(most, i.costs(s, end-first, edges))
		}
		first = end
	}
	return min(2*most, i.wholeBytes(stages))
}

// edges counts those of the rows from first to end, which are of one grain.
func (i *inference) edges(first, end int) (n int) {
	s := &i.own.spans[i.own.at(first)]
	for row := first; row < end; row++ {
		n += i.data.topology.Degree(int(s.first) + row - s.row)
	}
	return n
}

// inputBytes is what the features of so many vertices take, on average.
func (i *inference) inputBytes(vertices uint64) uint64 {
	if i.data.features.Sparse() {
		return 8*vertices + uint64(float64(vertices)*8*i.data.entries)
	}
	return 4 * vertices * uint64(i.data.features.Columns())
}

// tableBytes is what the largest tables take that are needed at once, with what is kept
// from one part to the next.
func (i *inference) tableBytes(stages int) uint64 {
	most := 0
	for _, s := range i.stages[:max(0, stages-1)] {
		most = max(most, s.In+s.CarryIn+s.Out+s.CarryOut)
	}
	kept, _ := i.kept()
	return uint64(most)*4*uint64(i.sources()) + i.betweenNodes(stages) + kept
}

// partBytes is what one part may take.
func (i *inference) partBytes() uint64 { return i.memory / 2 }

// part is how many vertices from first on a stage does at once: as many grains as
// memory allows, and one at least.
func (i *inference) part(s, first int) int {
	edges, rows := 0, 0
	for first+rows < i.own.rows {
		end := i.own.end(first + rows)
		if i.stages[s].Hops > 0 {
			edges += i.edges(first+rows, end)
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
	targets, all := uint64(rows), uint64(i.sources())
	sources := targets
	if stage.Hops > 0 {
		sources = min(all, targets+uint64(edges))
	}
	bytes := i.costOf[s].bytes(sources, targets, uint64(edges)) + 8*uint64(edges) + 28*sources
	switch _, kept := i.kept(); {
	case s == 0 && kept:
		return bytes + i.inputBytes(sources)
	case s == 0:
		return bytes + 2*i.inputBytes(sources) // as they come, and as they are read
	}
	return bytes + 4*sources*uint64(stage.In+stage.CarryIn)
}
