package train

import (
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/fit"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Choose decides what the device holds: as much as it has room for. Batches that serve
// all steps need nothing. Groups that may see only a part of the graph are sampled and
// gathered by the host.
func (t *Trainer) Choose(n *Needs) {
	holder, holds := t.Foreign.(sample.Holder)
	footprint := func(summed bool) sample.Footprint {
		return holder.Footprint(t.Data.Topology, t.drawing(summed), n.Holds.Roots, n.Holds.Entries)
	}
	d := fit.Device{Slots: t.Batches.Depth}
	if t.Uploader != nil {
		d.Keep(n, &t.Uploader.Holds, footprint)
		return
	}
	l, limits := t.Foreign.(limited)
	if t.Foreign == nil || t.Batches.Same || t.described().Isolated || !limits {
		n.Set(budget.Held, n.There(d.Slots))
		return
	}
	d.Name = t.Foreign.Name()
	d.Free, _ = l.Free()
	d.Free -= d.Free / 16
	if store := t.Data.Features; !store.Sparse() {
		d.Features = store.ThereBytes()
		if !t.Session.Alone() {
			d.Features += t.Sharing.Cached
		}
	}
	if holds && t.allEdges() && t.Data.Links == nil && t.sampling().Form.Relations == 0 && !t.sampling().Form.Along { // a step's own edges are taken out of its blocks
		d.Edges, d.Sums = footprint, t.Sums
	}
	d.Hold(n)
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
