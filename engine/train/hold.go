package train

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// there returns the device memory of the steps, with the rows of all slots.
func (n *Needs) there(slots int) uint64 {
	rows := n.Rows
	if n.Holds.Summed {
		rows += n.Rows // own rows and sums: each fewer than the sources'
	}
	return uint64(slots)*(slot.InSlabs(rows)+n.Holds.Edges.Batch*uint64(n.Holds.Groups)) + slot.InSlabs(n.Holds.Features) + n.Holds.Edges.Graph
}

// Choose decides what the device holds: as much as it has room for. Batches that serve
// all steps need nothing. Groups that may see only a part of the graph are sampled and
// gathered by the host.
func (n *Needs) Choose(t *Trainer) {
	slots := t.Batches.Depth
	l, limits := t.Foreign.(limited)
	holder, holds := t.Foreign.(sample.Holder)
	if t.Uploader != nil {
		keepHeld(&n.Holds, t, holder)
	}
	n.Set(budget.Held, n.there(slots))
	if t.Uploader != nil && n.Holds.Features > 0 {
		n.Sub(budget.Slots, n.Rows*uint64(slots))
	}
	if t.Uploader != nil || t.Foreign == nil || t.Batches.Same || t.described().Isolated || !limits {
		return
	}
	free, _ := l.Free()
	free -= free / 16
	fits := func(want slot.Holdings) bool {
		with := *n
		with.Holds = want
		with.Set(budget.Held, with.there(slots))
		if with.OnDevice()+n.Inference.Least+4*slot.Slab > free { // some are not filled
			return false
		}
		*n = with
		return true
	}
	store, h := t.Data.Features, n.Holds
	for i := range h.Entries {
		h.Entries[i] += int(float64(h.Entries[i]) * margin)
	}
	rows := h
	if !store.Sparse() {
		rows.Features = store.ThereBytes()
		if !t.Session.Alone() {
			rows.Features += t.Sharing.Cached
		}
		if fits(rows) {
			n.Sub(budget.Slots, n.Rows*uint64(slots))
		} else {
			n.note(t, "features", rows.Features, free)
		}
	}
	if !holds || !t.allEdges() {
		return
	}
	edges := n.Holds
	edges.Edges = holder.Footprint(t.Data.Topology, t.drawing(false), h.Roots, h.Entries)
	if how, sums := t.Sums(); sums && edges.Features > 0 {
		summed := edges
		summed.Summed, summed.How = true, how
		summed.Edges = holder.Footprint(t.Data.Topology, t.drawing(true), h.Roots, h.Entries)
		if fits(summed) {
			return
		}
	}
	if !fits(edges) {
		n.note(t, "edges", edges.Edges.Graph+edges.Edges.Batch*uint64(slots*h.Groups), free)
	}
}

// keepHeld keeps what the device holds already when the strategy changes.
func keepHeld(h *slot.Holdings, t *Trainer, holder sample.Holder) {
	held := &t.Uploader.Holds
	h.Features, h.Summed, h.How = held.Features, held.Summed, held.How
	if held.Edges.Graph > 0 {
		h.Edges = holder.Footprint(t.Data.Topology, t.drawing(h.Summed), h.Roots, h.Entries)
	}
}

// note adds a note on what stays on the host, and why.
func (n *Needs) note(t *Trainer, what string, bytes, free uint64) {
	n.Holds.Notes = append(n.Holds.Notes, fmt.Sprintf("the graph's %s stay in the host's memory: the device %s has %s free, and beside what steps take they would take %s",
		what, t.Foreign.Name(), budget.Format(free), budget.Format(bytes)))
}

// Sums returns how the outermost hop can be added up as it is sampled. All models must
// do it alike, and this node must have all features and sample few enough of them.
func (t *Trainer) Sums() (how tensor.Aggregation, ok bool) {
	o := t.sampling()
	last := len(o.Fanouts) - 1
	if last < 0 || o.Fanouts[last] > sample.MostSummed || !t.Session.Alone() || !t.Data.Features.Plain() {
		return 0, false
	}
	for i, l := range t.Learners {
		of, sums := l.Model.Sums()
		if !sums || i > 0 && of != how {
			return 0, false
		}
		how = of
	}
	return how, true
}

// allEdges reports whether this node has all edges.
func (t *Trainer) allEdges() bool { return t.Session.Alone() || t.Session.Replica.Replicated }

// drawing returns the options of sampling on a device.
func (t *Trainer) drawing(summed bool) sample.ResidentOptions {
	return sample.ResidentOptions{Options: t.sampling(), Summed: summed}
}

// openUploader opens the uploader for the workers, and copies what the device is to
// hold.
func (t *Trainer) openUploader(n *Needs) (err error) {
	if t.Uploader, err = slot.NewUploader(t.Foreign); err != nil {
		return err
	}
	t.Notes = append(t.Notes, n.Holds.Notes...)
	var kept *features.Far
	if !t.Session.Alone() {
		kept = t.Session.Source.Kept()
	}
	t.Notes = append(t.Notes, t.Uploader.Hold(&n.Holds, t.Data, kept, t.drawing)...)
	// What is held must be there before steps, which use another lane, read it.
	if err := t.Uploader.Device.Err(); err != nil {
		return &slot.Broken{Device: t.Foreign.Name(), Err: err}
	}
	if !t.Batches.Same {
		return t.Batches.Land(t.Uploader, int(n.Rows))
	}
	s := t.Batches.Slots[0]
	if err := t.Uploader.Land(s, int(n.Rows), true); err != nil {
		return err
	}
	s.Staged.Bring(s, nil)
	return nil
}
