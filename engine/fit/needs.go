package fit

import (
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/slot"
)

// Margin is how much larger a batch may be than those that were looked at, as a share.
const Margin = 0.1

// Needs is the memory that a run takes, with the sizes of the largest batch seen.
type Needs struct {
	budget.Needs
	Rows   uint64 // of dense features
	Far    uint64 // of dense features of other nodes
	Slot   uint64 // the whole slot, with its rows unless they are gathered late
	Late   bool   // rows are gathered when a step begins, into memory of all slots
	Worker uint64 // of each worker, beside slots
	Holds  slot.Holdings
}

// GivesBack says that the rows of so many slots are given back before inference.
func (n *Needs) GivesBack(slots int) {
	if n.Late {
		n.Inference.Instead = n.Rows + uint64(slots)*n.Far
	}
}
