package forecast

import (
	"math/bits"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/nn"
)

// sizes are the largest that were seen of a node's steps.
type sizes struct {
	slot, pass, beside uint64
	edges              uint64 // of other nodes' shards, where they are here
	held               uint64 // by the strategy
}

// see adds a step of a node.
func (z *sizes) see(j *job, l *load) {
	bytes := uint64(float64(l.remote) * (j.counter.row + 8))
	for _, g := range l.groups {
		if g.roots == 0 {
			continue
		}
		in := nn.InputSize{Rows: g.inputs, Sparse: j.Graph.Sparse}
		bytes += 8*uint64(g.roots) + 4*uint64(g.inputs)
		if in.Sparse {
			in.Entries = int(j.Graph.Entries * float64(g.inputs))
			bytes += 8*uint64(g.inputs) + 20*uint64(in.Entries)
		} else {
			bytes += 4 * uint64(g.inputs) * uint64(j.Graph.Columns)
		}
		for _, b := range g.blocks {
			bytes += uint64(16*b.Entries + 8*b.Targets + 12*b.Sources) // with its transpose
		}
		arena, beside := j.model.Forecast(in, g.blocks)
		z.pass = max(z.pass, uint64(arena+4*g.roots*(j.Graph.About.Classes+1)))
		z.beside = max(z.beside, uint64(beside))
	}
	z.slot = max(z.slot, bytes)
}

// needs returns the memory of a node whose steps are of these sizes.
func (z *sizes) needs(j *job, m *mesh) (n budget.Needs) {
	weights := uint64(4 * j.model.Size())
	rows := uint64(7 + 3) // gradients, moments, copies; and sums
	if j.Recipe.Sharing.Deterministic {
		rows += 3 * uint64(bits.Len(uint(len(m.layout.Owners))))
	}
	n.Set(budget.Weights, rows*weights)
	n.Set(budget.Graph, z.edges+z.held)
	_, slots := ahead(j.count)
	n.Set(budget.Slots, uint64(slots)*z.slot)
	n.Set(budget.Pass, z.pass)
	n.Set(budget.Beside, z.beside)
	return n
}
