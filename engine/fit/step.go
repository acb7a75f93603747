package fit

import (
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/slot"
)

// A Step is what is known of a step on a node before anything of it is prepared. Runs and
// forecasts of jobs add it up by the same sums.
type Step struct {
	Roots    int // of the whole batch
	Groups   []slot.Shape
	Alone    bool   // one node does all
	Valued   bool   // entries of blocks have values
	Late     bool   // dense rows are gathered when the step begins
	Vertices int    // of the graph
	Classes  int    // columns of the model's output
	Words    int    // of a target
	Copied   bool   // losses are computed from a copy of the output
	Far      uint64 // bytes of rows of other nodes, with the places of all; see Far
	Heap     uint64 // bytes of such rows in one answer to another node
	More     More
	// Input returns what a group's input takes of its slot, and how much of it is dense
	// rows. Passes calls see with what each pass of a group takes of an arena, and beside
	// it.
	Input  func(group int) (slot, rows uint64)
	Passes func(group int, see func(arena, beside int))
}

// More is what a strategy takes of a step beside what all take.
type More struct {
	Slot   uint64 // of the slot, with its rows
	Rows   uint64 // of the arena of rows
	Worker uint64 // while it is prepared
}

// Far returns the bytes of so many rows of other nodes, each of so many bytes, with the
// places of all rows that a step reads.
func Far(remote, places int, row float64) uint64 {
	const planned = 4 * 4 // vertex, owner, order, question
	return uint64(float64(remote)*(row+planned)) + 4*uint64(places)
}

// See adds a step to what a run needs.
func (n *Needs) See(s *Step) {
	bytes, rows := uint64(8*s.Roots)+s.More.Slot, s.More.Rows
	if !s.Alone {
		bytes += s.Far
	}
	most, filled, all := 0, 0, 0 // vertices of a group; groups; vertices of all
	for i := range s.Groups {
		g := &s.Groups[i]
		if len(g.Roots) == 0 {
			continue
		}
		filled, all, most = filled+1, all+g.Inputs(), max(most, g.Inputs())
		own, dense := s.Input(i)
		own += g.Bytes(s.Valued)
		s.Passes(i, func(arena, beside int) {
			n.Raise(budget.Pass, uint64(arena+4*len(g.Roots)*(s.Classes+s.Words)+4096))
			if s.Copied {
				beside += 16 * len(g.Roots) * s.Classes // with their gradients, in float64
			}
			n.Raise(budget.Beside, uint64(beside))
		})
		bytes, rows = bytes+own, rows+dense
		if s.Late {
			bytes -= dense
		}
	}
	if n.Late = s.Late; n.Late {
		n.Far = max(n.Far, s.Heap)
	}
	worker := s.More.Worker + sample.TableBytes(most, s.Vertices)
	if filled > 1 && !s.Alone {
		worker += gather.TableBytes(all)
	}
	// Others ask for about as many rows as this node does. Answers are on the heap where rows
	// are not sent as they are stored, and the heap grows beyond what lives on it: one
	// that is sent, and one that is yet to be collected.
	worker += 2 * s.Heap
	n.Worker = max(n.Worker, worker)
	n.Slot, n.Rows = max(n.Slot, bytes), max(n.Rows, rows)
}

// Dense returns what so many rows of dense features of so many columns take in a slot.
func Dense(rows, columns int) uint64 {
	const ends = 64 // padding of matrices, which begin at whole cache lines
	return ends + 4*uint64(rows)*uint64(columns)
}

// Sparse returns what so many rows of sparse features with so many entries take in a slot.
func Sparse(rows, entries int) uint64 { return 8*uint64(rows) + 20*uint64(entries) }

// Ahead adds what batches take of which so many are in memory at once, prepared by so many
// hands, once all that are looked at have been seen. same: one batch serves all epochs, and
// it has been seen.
func (n *Needs) Ahead(depth, hands int, same bool) {
	n.Set(budget.Copies, n.Slot)
	n.Set(budget.Slots, n.Slot*uint64(depth))
	if n.Late {
		n.Add(budget.Slots, n.Rows)
	}
	if !same {
		n.Grow(Margin, budget.Slots, budget.Pass, budget.Beside, budget.Step)
		n.Rows += uint64(float64(n.Rows) * Margin)
		n.Far += uint64(float64(n.Far) * Margin)
	}
	n.Add(budget.Graph, n.Worker*uint64(hands))
}
