package fit

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Device is a device with memory of its own, which may hold a part of the graph.
type Device struct {
	Name  string
	Free  uint64 // bytes
	Slots int    // of batches

	Features uint64 // bytes of the features that it may hold; 0: none
	// Edges returns what the edges take, and Sums how the outermost hop can be added up as
	// it is sampled. Without Edges the device holds none.
	Edges func(summed bool) sample.Footprint
	Sums  func() (how tensor.Aggregation, ok bool)
}

// Hold decides what the device holds: as much as it has room for.
func (d *Device) Hold(n *Needs) {
	n.Set(budget.Held, n.There(d.Slots))
	for i := range n.Holds.Entries {
		n.Holds.Entries[i] += int(float64(n.Holds.Entries[i]) * Margin)
	}
	if d.Features > 0 {
		rows := n.Holds
		rows.Features = d.Features
		if d.fits(n, rows) {
			n.Sub(budget.Slots, n.Rows*uint64(d.Slots))
		} else {
			d.stays(n, "features", rows.Features)
		}
	}
	if d.Edges == nil {
		return
	}
	if how, sums := d.Sums(); sums && n.Holds.Features > 0 {
		summed := n.Holds
		summed.Summed, summed.How, summed.Edges = true, how, d.Edges(true)
		if d.fits(n, summed) {
			return
		}
	}
	edges := n.Holds
	edges.Edges = d.Edges(false)
	if !d.fits(n, edges) {
		d.stays(n, "edges", edges.Edges.Graph+edges.Edges.Batch*uint64(d.Slots*edges.Groups))
	}
}

// Keep keeps what the device holds already when the strategy changes.
func (d *Device) Keep(n *Needs, held *slot.Holdings, edges func(summed bool) sample.Footprint) {
	h := &n.Holds
	h.Features, h.Summed, h.How = held.Features, held.Summed, held.How
	if held.Edges.Graph > 0 {
		h.Edges = edges(h.Summed)
	}
	n.Set(budget.Held, n.There(d.Slots))
	if h.Features > 0 {
		n.Sub(budget.Slots, n.Rows*uint64(d.Slots))
	}
}

// fits has the device hold what is wanted if it has room for that.
func (d *Device) fits(n *Needs, want slot.Holdings) bool {
	with := *n
	with.Holds = want
	with.Set(budget.Held, with.There(d.Slots))
	if with.OnDevice()+n.Inference.Least+4*slot.Slab > d.Free { // some are not filled
		return false
	}
	*n = with
	return true
}

// stays adds a note on what stays on the host, and why.
func (d *Device) stays(n *Needs, what string, bytes uint64) {
	n.Holds.Notes = append(n.Holds.Notes, fmt.Sprintf("the graph's %s stay in the host's memory: the device %s has %s free, and beside what steps take they would take %s",
		what, d.Name, budget.Format(d.Free), budget.Format(bytes)))
}

// There returns the device memory of the steps, with the rows of all slots.
func (n *Needs) There(slots int) uint64 {
	rows := n.Rows
	if n.Holds.Summed {
		rows += n.Rows // own rows and sums: each fewer than the sources'
	}
	return uint64(slots)*(slot.InSlabs(rows)+n.Holds.Edges.Batch*uint64(n.Holds.Groups)) + slot.InSlabs(n.Holds.Features) + n.Holds.Edges.Graph
}

// OnDevice returns an error, a *budget.Short, if a run needs more of a device's memory than is
// free.
func OnDevice(n *Needs, free, total uint64) error {
	needs := n.OnDevice() + n.Inference.Least
	if needs <= free {
		return nil
	}
	return &budget.Short{
		Cause: fmt.Sprintf("it needs %s of the device's memory, which has %s free of %s", budget.Format(needs), budget.Format(free), budget.Format(total)),
		Needs: needs, Has: free, Advice: []budget.Advice{"take a smaller {batch}, {fanout} or {hidden}"},
	}
}
