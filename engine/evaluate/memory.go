package evaluate

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/nn"
)

// What inference takes of memory is forecast here, and what it does follows from that: one
// part over all vertices if there is room, else tables in memory or, if these take more than
// half of it, in files, and parts of as many chunks as fit in the other half.

// Least returns the least memory that it can do with, for all stages of any model.
func (i *Inference) Least() uint64 { return i.LeastFor(0) }

// LeastFor returns the least memory for the first stages only; 0: for all of them.
func (i *Inference) LeastFor(stages int) uint64 {
	return i.within(0, func(all int) uint64 {
		if stages > 0 {
			all = stages
		}
		return i.least(all)
	})
}

// Takes returns about how much it takes of some memory that it may use.
func (i *Inference) Takes(memory uint64) uint64 { return i.within(memory, i.takes) }

// within is the largest size of all models if it might use some memory.
func (i *Inference) within(memory uint64, size func(stages int) uint64) uint64 {
	before := i.memory
	i.memory = memory
	defer func() { i.memory = before }()
	return i.largest(size)
}

// kept returns what the features of the halo take if they are kept, which they are where
// they take no more than a quarter of the memory.
func (i *Inference) kept() (bytes uint64, ok bool) {
	if i.now.stages[0].Hops == 0 {
		return 0, true
	}
	bytes = i.inputBytes(uint64(len(i.halo.ids)))
	if bytes > i.memory/4 {
		return 0, false
	}
	return bytes, true
}

// wholeBytes estimates what parts over all vertices take.
func (i *Inference) wholeBytes(stages int) uint64 {
	edges, sources := uint64(i.own.edges), uint64(i.sources())
	targets := uint64(i.own.rows)
	bytes := 4*sources + i.betweenNodes(stages)
	convolves := false
	largest, joined := uint64(0), uint64(0)
	for s, stage := range i.now.stages[:stages] {
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

// betweenNodes counts the rows that nodes exchange and keep.
func (i *Inference) betweenNodes(stages int) (bytes uint64) {
	for s := range i.now.stages[:stages] {
		if i.exchanged(s, stages) {
			bytes += uint64(i.halo.wants() * i.now.stages[s].Out)
		}
	}
	bytes += uint64(i.widest(stages) * len(i.halo.ids))
	return 4 * bytes
}

// wholeStage is what a stage takes over all vertices.
func (i *Inference) wholeStage(s int) uint64 {
	targets, edges := uint64(i.own.rows), uint64(i.own.edges)
	const ends = 1 << 12 // of matrices, which begin at whole lines
	return i.now.costOf[s].bytes(uint64(i.sources()), targets, edges+targets) + ends
}

// takes estimates what inference takes of the memory that it may use.
func (i *Inference) takes(stages int) uint64 {
	if whole := i.wholeBytes(stages); whole <= i.memory {
		return whole
	}
	if tables := i.tableBytes(stages); tables <= i.memory/2 {
		return tables + i.partBytes()
	}
	return i.partBytes()
}

// least is what inference can do with: twice the part of one chunk that takes most, or the
// whole.
func (i *Inference) least(stages int) (most uint64) {
	for first := 0; first < i.own.rows; {
		end := i.own.end(first)
		edges := i.edges(first, end)
		for s := range i.now.stages[:stages] {
			most = max(most, i.costs(s, end-first, edges))
		}
		first = end
	}
	return min(2*most, i.wholeBytes(stages))
}

// edges counts those of the rows from first to end, which are of one chunk.
func (i *Inference) edges(first, end int) (n int) {
	s := &i.own.spans[i.own.at(first)]
	for row := first; row < end; row++ {
		n += i.data.Topology.Degree(int(s.first) + row - s.row)
	}
	return n
}

// inputBytes is what the features of so many vertices take, on average.
func (i *Inference) inputBytes(vertices uint64) uint64 {
	if i.data.Features.Sparse() {
		return 8*vertices + uint64(float64(vertices)*8*i.data.Entries)
	}
	return 4 * vertices * uint64(i.data.Features.Columns())
}

// tableBytes is what the largest tables take that are needed at once, with what is kept
// from one part to the next.
func (i *Inference) tableBytes(stages int) uint64 {
	most := 0
	for _, s := range i.now.stages[:max(0, stages-1)] {
		most = max(most, s.In+s.CarryIn+s.Out+s.CarryOut)
	}
	kept, _ := i.kept()
	return uint64(most)*4*uint64(i.sources()) + i.betweenNodes(stages) + kept
}

// partBytes is what one part may take.
func (i *Inference) partBytes() uint64 { return i.memory / 2 }

// part returns how many vertices from first on a stage does at once: as many chunks as
// memory allows, and one at least.
func (i *Inference) part(s, first int) int {
	edges, rows := 0, 0
	for first+rows < i.own.rows {
		end := i.own.end(first + rows)
		if i.now.stages[s].Hops > 0 {
			edges += i.edges(first+rows, end)
		}
		if rows > 0 && i.costs(s, end-first, edges) > i.partBytes() {
			break
		}
		rows = end - first
	}
	return rows
}

// costs estimates what a part of so many vertices takes at most: all sources of its edges
// may be different.
func (i *Inference) costs(s, rows, edges int) uint64 {
	stage := &i.now.stages[s]
	targets, all := uint64(rows), uint64(i.sources())
	sources := targets
	if stage.Hops > 0 {
		sources = min(all, targets+uint64(edges))
	}
	bytes := i.now.costOf[s].bytes(sources, targets, uint64(edges)) + 8*uint64(edges) + 28*sources
	switch _, kept := i.kept(); {
	case s == 0 && kept:
		return bytes + i.inputBytes(sources)
	case s == 0:
		return bytes + 2*i.inputBytes(sources) // as they come, and as they are read
	}
	return bytes + 4*sources*uint64(stage.In+stage.CarryIn)
}

// largest returns the largest size of all models, with all their stages.
func (i *Inference) largest(size func(stages int) uint64) (most uint64) {
	now := i.now
	for _, i.now = range i.views {
		most = max(most, size(len(i.now.stages)))
	}
	i.now = now
	return most
}

// fits reports whether there is room for parts over all vertices: for those of all models,
// where there are several, since what they read stays.
func (i *Inference) fits(stages int) bool {
	if len(i.views) > 1 {
		return i.largest(i.wholeBytes) <= i.memory
	}
	return i.wholeBytes(stages) <= i.memory
}

// hears reports whether the first stage of any model reads the rows of neighbours. The
// others have them as well then, and do not use them.
func (i *Inference) hears() bool {
	for _, v := range i.views {
		if v.stages[0].Hops > 0 {
			return true
		}
	}
	return false
}

// A stageCost is what a stage takes of an arena: bytes for each of its sources, targets and
// edges.
type stageCost struct{ source, target, edge float64 }

// costOf returns the cost of a model's stage. Rows of sparse features have so many entries.
func costOf(m *nn.Model, stage int, sparse bool, entries float64) stageCost {
	const n = 1 << 10
	at := func(sources, targets, edges int) float64 {
		in := nn.InputSize{Rows: sources, Sparse: sparse, Entries: int(float64(sources) * entries)}
		return float64(m.ForecastStage(stage, in, nn.Size{Targets: targets, Sources: sources, Entries: edges}))
	}
	if m.Stages()[stage].Hops == 0 {
		return stageCost{source: (at(2*n, 2*n, 0) - at(n, n, 0)) / n}
	}
	base := at(2*n, n, n)
	return stageCost{source: (at(3*n, n, n) - base) / n, target: (at(2*n, 2*n, n) - base) / n, edge: (at(2*n, n, 2*n) - base) / n}
}

func (c stageCost) bytes(sources, targets, edges uint64) uint64 {
	return uint64(c.source*float64(sources) + c.target*float64(targets) + c.edge*float64(edges))
}
