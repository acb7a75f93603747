package slot

import (
	"context"
	"runtime/pprof"
	"time"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/frontier"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Slot is one step with all that this node needs for it. Its memory is reused.
type Slot struct {
	Step   int
	Roots  []uint32 // of the whole batch: a part of the epoch's order; where pairs are learnt, their places
	Groups []Group  // of this node, in the order of computing
	// Spans are what each node contributes to the step's sum where gradients are added
	// up by grains; else nil.
	Spans [][]exchange.Span

	Dealt []deal.Group // holds the groups' roots
	Sets  [][]uint32   // the groups' outermost vertices
	Far   gather.Rows
	Rows  tensor.Arena // of dense input
	// Late means that dense input is yet to be gathered, when the step begins.
	Late bool
	// Staged is the slot's part of a device with memory of its own. The groups' dense
	// input is there then, and no longer in Rows.
	Staged *upload
	// Pairs are those of the step, where pairs are learnt.
	Pairs link.Batch
	// Own is what a method keeps with the slot for reuse.
	Own any

	effort
}

// effort is the cost of preparing a slot. It counts what was requested for the step,
// before and during it.
type effort struct {
	Tally               peer.Tally
	Sampling, Gathering time.Duration
	Gathered, Remote    int // rows; Remote are those of Gathered from other nodes
	Kept                int // those of Gathered from other nodes that had come before
	Drawn               int // edges, where groups do not keep their blocks; else 0
}

// A Group is a set of seed vertices computed together, with their blocks and input.
type Group struct {
	deal.Group
	Labels []int32  // targets of the roots, each so many words, or of pairs: see package task
	Ends   []uint32 // memory of the roots, where pairs are learnt
	Batch  sample.Batch
	Input  nn.Input
	Sparse features.Rows
	Place  int // among the groups of a step that a method prepares itself

	Weights []float64 // of the roots' losses, where groups train in isolation; nil: all 1
	Weighed []float64 // memory of Weights
	Weight  float64   // sum of Weights
}

// Edges counts the edges of the slot's blocks.
func (s *Slot) Edges() uint64 {
	n := s.Drawn
	if n > 0 {
		return uint64(n)
	}
	for i := range s.Groups {
		for b := range s.Groups[i].Batch.Blocks {
			n += s.Groups[i].Batch.Blocks[b].Entries()
		}
	}
	return uint64(n)
}

// Outermost sets the slot's Sets.
func (s *Slot) Outermost() {
	s.Sets = s.Sets[:0]
	for i := range s.Groups {
		s.Sets = append(s.Sets, s.Groups[i].Outermost())
	}
}

// Outermost returns the vertices whose features the group reads.
func (g *Group) Outermost() []uint32 {
	if len(g.Batch.Blocks) == 0 {
		return g.Roots
	}
	return g.Batch.Blocks[0].Vertices
}

// Forget resets the effort, once it has been counted.
func (s *Slot) Forget() {
	s.Tally.Reset()
	s.Sampling, s.Gathering, s.Gathered, s.Remote, s.Kept, s.Drawn = 0, 0, 0, 0, 0, 0
}

// A Worker prepares slots as one prefetch worker. It is used by one goroutine at a
// time.
type Worker struct {
	Data    *dataset.Graph
	Sampler *sample.Sampler
	Far     *frontier.Frontier // nil where all edges are local
	Device  tensor.Device      // of one thread
	Scratch tensor.Arena
}

// Close releases the worker's device and memory.
func (h *Worker) Close() {
	if h.Scratch != nil {
		h.Scratch.Close()
	}
	h.Device.Close()
}

// Slots counts those that a step has on this node.
func (s *Slot) Slots() int {
	n := 0
	for i := range s.Groups {
		if i == 0 || s.Groups[i].Slot != s.Groups[i-1].Slot {
			n++
		}
	}
	return n
}

// Holdings is the part of the graph that a device holds for the whole run, beside the
// memory of steps: the edges, so that it samples blocks itself, and the local features.
// What it has no room for stays on the host.
type Holdings struct {
	Roots, Groups int   // of the largest step seen
	Entries       []int // of its blocks, from the roots outwards

	Features uint64           // bytes; 0: they stay on the host
	Edges    sample.Footprint // of a batch, too; no graph: they stay on the host
	// Summed means that the outermost hop is added up, by How, as it is sampled.
	Summed bool
	How    tensor.Aggregation
	Notes  []string // on what stays
}

// Slab is the unit of a device's arenas.
const Slab = 2 << 20

// InSlabs rounds bytes up to whole slabs.
func InSlabs(bytes uint64) uint64 { return (bytes + Slab - 1) / Slab * Slab }

// Phases are the profiler labels of the parts of a step.
type Phases struct{ Sample, Gather, Compute, Reduce, Evaluate, Other context.Context }

// NewPhases returns the labels.
func NewPhases(ctx context.Context) Phases {
	label := func(phase string) context.Context {
		return pprof.WithLabels(ctx, pprof.Labels("phase", phase))
	}
	return Phases{label("sample"), label("gather"), label("compute"), label("reduce"), label("evaluate"), ctx}
}
