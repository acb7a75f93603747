package evaluate

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A device with memory of its own can't see tables, and layers that users add may not say
// how to compute them in two steps. For these the rows of a part's sources are brought
// together, as for a mini-batch, and what a part takes depends on how many these are.

// planBrought plans such parts: of as many chunks as fit in half of the memory, with tables
// in the other half, if they fit there.
func (i *Inference) planBrought(stages int) plan {
	parts := i.memory / 2
	if i.now.model.Form().Along { // it has no other plan, however small the graph
		parts = min(parts, i.costsOf(stages, 0, i.own.rows))
	}
	p := plan{brought: true, memory: parts}
	if tables := i.broughtTables(stages); tables <= i.memory/2 {
		p.memory += tables
	} else {
		p.inFile, p.disk = true, tables
	}
	return p
}

// broughtTables is what tables take, with what is kept from one part to the next.
func (i *Inference) broughtTables(stages int) uint64 {
	most := 0
	for _, s := range i.now.stages[:max(0, stages-1)] {
		most = max(most, s.In+s.CarryIn+s.Out+s.CarryOut)
	}
	kept, _ := i.kept()
	outs, in, _ := i.exchanges(stages)
	return uint64(most)*4*uint64(i.sources()) + outs + in + kept
}

// leastBrought is what such parts can do with: twice the part of one chunk that takes most, or the whole.
func (i *Inference) leastBrought(stages int) (most uint64) {
	for first := 0; first < i.own.rows; first = i.own.end(first) {
		most = max(most, i.costsOf(stages, first, i.own.end(first)))
	}
	return min(2*most, i.wholeBytes(stages))
}

// costsOf is the most that a stage costs for the rows from first to end.
func (i *Inference) costsOf(stages, first, end int) (most uint64) {
	edges := i.edges(first, end)
	for s := range i.now.stages[:stages] {
		most = max(most, i.costs(s, end-first, edges))
	}
	return most
}

// partBrought returns how many vertices from first on a stage does at once: as many chunks
// as memory allows, and one at least.
func (i *Inference) partBrought(s, first int) int {
	edges, rows := 0, 0
	for first+rows < i.own.rows {
		end := i.own.end(first + rows)
		if i.now.stages[s].Hops > 0 {
			edges += i.edges(first+rows, end)
		}
		if rows > 0 && i.costs(s, end-first, edges) > i.memory/2 {
			break
		}
		rows = end - first
	}
	return rows
}

// costs estimates what such a part of so many vertices takes at most: all sources of its
// edges may be different.
func (i *Inference) costs(s, rows, edges int) uint64 {
	stage := &i.now.stages[s]
	targets, all := uint64(rows), uint64(i.sources())
	sources, related := targets, uint64(0)
	if stage.Hops > 0 {
		sources = min(all, targets+uint64(edges))
		related = i.now.model.Form().RelatedBytes(nn.Size{Targets: rows, Sources: int(sources), Entries: edges}, false)
	}
	bytes := i.now.costOf[s].bytes(sources, targets, uint64(edges)) + 8*uint64(edges) + 28*sources + related
	switch _, kept := i.kept(); {
	case s == 0 && kept:
		return bytes + i.inputBytes(sources)
	case s == 0:
		return bytes + 2*i.inputBytes(sources) // as they come, and as they are read
	}
	return bytes + 4*sources*uint64(stage.In+stage.CarryIn)
}

// runBrought runs a stage for a part with the rows of its sources.
func (i *Inference) runBrought(ctx context.Context, s, first, rows int, before *between) (y, beside tensor.Matrix, err error) {
	c := &i.scratch
	if c.sampler == nil {
		c.sampler = sample.New(i.data.Topology, sample.Options{Fanouts: []int{0}, Form: i.now.model.Form(), Inverses: i.halo.inverses})
	}
	c.ids = i.own.vertices(c.ids[:0], first, rows)
	if err := c.sampler.Sample(ctx, &c.batch, 0, 0, c.ids); err != nil {
		return y, beside, err
	}
	block := &c.batch.Blocks[0]
	var in nn.Input
	var x tensor.Matrix
	if s == 0 {
		if in, err = i.read(ctx, block.Vertices); err != nil {
			return y, beside, err
		}
	} else {
		x = i.sourcesOf(before.x, block)
	}
	// A layer sees of what travels beside only what its targets have.
	y, beside = i.parts.pass.Stage(s, block, in, x, i.rangeOf(before.carry, first, rows))
	return y, beside, nil
}

// sourcesOf returns the rows of a block's sources.
func (i *Inference) sourcesOf(t *table, block *sample.Block) tensor.Matrix {
	rows := block.Vertices
	if !i.halo.nodes.alone() {
		near := 0
		i.scratch.rows = i.scratch.rows[:0]
		for _, v := range rows {
			i.scratch.rows = append(i.scratch.rows, uint32(i.halo.row(v, &near)))
		}
		rows = i.scratch.rows
	}
	y := i.parts.arena.Alloc(i.device.Type(), block.Cols, t.x.Cols)
	i.pick(y, t.x, rows)
	return y
}
