package slot

import (
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/frontier"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// An Outline is the sizes of a slot that is prepared for a step, found without preparing
// it. Its memory is reused.
type Outline struct {
	Step   int
	Roots  []uint32 // of the whole batch
	Groups []Shape  // of this node
	// Others are the groups of the other nodes, where a method counts these too.
	Others [][]Shape

	Pairs link.Batch // of the step, where pairs are learnt
	Dealt []deal.Group
	Sets  [][]uint32  // the groups' outermost vertices
	Far   gather.Rows // counted, not gathered
	Tally peer.Tally
}

// A Shape is the sizes of a group.
type Shape struct {
	deal.Group
	Blocks []nn.Size // the outermost first
}

// Inputs counts the vertices whose features the group reads.
func (g *Shape) Inputs() int {
	if len(g.Blocks) == 0 {
		return len(g.Roots)
	}
	return g.Blocks[0].Sources
}

// Targets counts the targets of its outermost block.
func (g *Shape) Targets() int {
	if len(g.Blocks) == 0 {
		return len(g.Roots)
	}
	return g.Blocks[0].Targets
}

// Bytes returns the memory of the group's blocks, whose entries have values or not, with
// their transposes. The sources of a block are a part of those of the next one outwards.
func (g *Shape) Bytes(valued bool) uint64 {
	const entry = 4 + 4 + 4 // source; target and place, transposed
	bytes := 4 * g.Inputs()
	for _, z := range g.Blocks {
		bytes += entry*z.Entries + 8*(z.Targets+1) + 8*(z.Sources+1)
		if valued {
			bytes += 4 * z.Entries
		}
	}
	return uint64(bytes)
}

// A Looker counts for outlines. It needs nothing that is as large as a step.
type Looker struct {
	Counter *sample.Counter
	Far     *frontier.Frontier // nil where all edges are local
}

// See records the sizes of a step's groups.
func (h *Holdings) See(o *Outline) {
	h.Groups = max(h.Groups, len(o.Groups))
	for i := range o.Groups {
		g := &o.Groups[i]
		h.Roots = max(h.Roots, len(g.Roots))
		for len(h.Entries) < len(g.Blocks) {
			h.Entries = append(h.Entries, 0)
		}
		for b, z := range g.Blocks {
			hop := len(g.Blocks) - 1 - b
			h.Entries[hop] = max(h.Entries[hop], z.Entries)
		}
	}
}
