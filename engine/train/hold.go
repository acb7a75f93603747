package train

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// holdings are what a device is to hold of the graph for as long as the run lasts, beside
// what steps take of its memory: the edges, so that it draws blocks itself, and the
// features that are here. What it has no room for stays on the host.
type holdings struct {
	roots, groups int   // of the largest step seen
	entries       []int // of its blocks, from the roots outwards

	features uint64           // bytes; 0: they stay on the host
	edges    sample.Footprint // of a batch, too; no graph: they stay on the host
	// summed says that the outermost hop is added up as it is drawn, and how.
	summed bool
	how    tensor.Aggregation
	notes  []string // on what stays
}

// see takes a step's groups into account.
func (h *holdings) see(s *slot) {
	h.groups = max(h.groups, len(s.groups))
	for i := range s.groups {
		g := &s.groups[i]
		h.roots = max(h.roots, len(g.Roots))
		for len(h.entries) < len(g.batch.Blocks) {
			h.entries = append(h.entries, 0)
		}
		for b := range g.batch.Blocks {
			hop := len(g.batch.Blocks) - 1 - b
			h.entries[hop] = max(h.entries[hop], g.batch.Blocks[b].Entries())
		}
	}
}

// slab is what arenas of devices are a multiple of.
const slab = 2 << 20

func inSlabs(bytes uint64) uint64 { return (bytes + slab - 1) / slab * slab }

// there is what it takes of the device's memory, with the rows of all slots.
func (n *needs) there(slots int) uint64 {
	rows := n.rows
	if n.holds.summed {
		rows += n.rows // own rows and sums: each fewer than the sources'
	}
	return uint64(slots)*(inSlabs(rows)+n.holds.edges.Batch*uint64(n.holds.groups)) + inSlabs(n.holds.features) + n.holds.edges.Graph
}

// choose says what the device is to hold: of what there may be, the most for which it has
// room. Batches that are there once for all steps need nothing, and groups that may see a
// part of the graph only have the host draw and gather.
func (n *needs) choose(t *trainer) {
	slots := len(t.batches.slots)
	l, limits := t.foreign.(limited)
	holder, holds := t.foreign.(sample.Holder)
	if t.ferry != nil {
		n.holds.keep(t, holder)
	}
	n.ferry = n.there(slots)
	if t.ferry != nil && n.holds.features > 0 {
		n.slots -= min(n.slots, n.rows*uint64(slots))
	}
	if t.ferry != nil || t.foreign == nil || t.batches.same || t.isolated != nil || !limits {
		return
	}
	free, _ := l.Free()
	free -= free / 16
	fits := func(want holdings) bool {
		with := *n
		with.holds = want
		with.ferry = with.there(slots)
		if with.onDevice()+n.least+4*slab > free { // some are not filled
			return false
		}
		n.holds, n.ferry = want, with.ferry
		return true
	}
	store, h := t.data.features, n.holds
	for i := range h.entries {
		h.entries[i] += int(float64(h.entries[i]) * margin)
	}
	rows := h
	if !store.Sparse() {
		rows.features = store.ThereBytes()
		if t.shared != nil {
			rows.features += t.shared.cached
		}
		if fits(rows) {
			n.slots -= min(n.slots, n.rows*uint64(slots))
		} else {
			n.note(t, "features", rows.features, free)
		}
	}
	if !holds || !t.allEdges() {
		return
	}
	edges := n.holds
	edges.edges = holder.Footprint(t.data.topology, t.drawing(false), h.roots, h.entries)
	if how, sums := t.sums(); sums && edges.features > 0 {
		summed := edges
		summed.summed, summed.how = true, how
		summed.edges = holder.Footprint(t.data.topology, t.drawing(true), h.roots, h.entries)
		if fits(summed) {
			return
		}
	}
	if !fits(edges) {
		n.note(t, "edges", edges.edges.Graph+edges.edges.Batch*uint64(slots*h.groups), free)
	}
}

// keep is what the device holds already: a change of strategy is none of that.
func (h *holdings) keep(t *trainer, holder sample.Holder) {
	held := &t.ferry.holds
	h.features, h.summed, h.how = held.features, held.summed, held.how
	if held.edges.Graph > 0 {
		h.edges = holder.Footprint(t.data.topology, t.drawing(h.summed), h.roots, h.entries)
	}
}

// note says what stays on the host, and why.
func (n *needs) note(t *trainer, what string, bytes, free uint64) {
	n.holds.notes = append(n.holds.notes, fmt.Sprintf("the graph's %s stay in the host's memory: the device %s has %s free, and beside what steps take they would take %s",
		what, t.foreign.Name(), gib(free), gib(bytes)))
}

// sums says how the outermost hop can be added up as it is drawn: for all models alike,
// where this node has all features, and draws few enough of them.
func (t *trainer) sums() (how tensor.Aggregation, ok bool) {
	o := t.sampling()
	last := len(o.Fanouts) - 1
	if last < 0 || o.Fanouts[last] > sample.MostSummed || t.shared != nil || !t.data.features.Plain() {
		return 0, false
	}
	for i, l := range t.learners {
		of, sums := l.model.Sums()
		if !sums || i > 0 && of != how {
			return 0, false
		}
		how = of
	}
	return how, true
}

// allEdges says whether this node has them.
func (t *trainer) allEdges() bool { return t.shared == nil || t.shared.replica.Replicated }

// drawing is how blocks are drawn on a device.
func (t *trainer) drawing(summed bool) sample.ResidentOptions {
	return sample.ResidentOptions{Options: t.sampling(), Summed: summed}
}

// openFerry makes the way to the device for hands, and brings what it is to hold.
func (t *trainer) openFerry(n *needs) (err error) {
	if t.ferry, err = newFerry(t.foreign); err != nil {
		return err
	}
	t.notes = append(t.notes, n.holds.notes...)
	t.ferry.hold(t, &n.holds)
	// What is held is there before steps, of another lane, are given it.
	if err := t.ferry.device.Err(); err != nil {
		return &Broken{Device: t.foreign.Name(), err: err}
	}
	if !t.batches.same {
		return t.batches.land(t.ferry, int(n.rows))
	}
	s := t.batches.slots[0]
	if err := t.ferry.land(s, int(n.rows), true); err != nil {
		return err
	}
	s.landing.bring(s, nil)
	return nil
}

// hold copies to the device what it is to hold. Others may have taken its memory since
// that was chosen: then it stays on the host after all.
func (f *ferry) hold(t *trainer, h *holdings) {
	if h.features > 0 {
		var err error
		if f.held, err = f.device.NewArena(int(h.features)); err != nil {
			t.notes = append(t.notes, fmt.Sprintf("the graph's features stay in the host's memory: %v", err))
		} else {
			f.keep(t)
			f.holds.features = h.features
		}
	}
	if h.edges.Graph > 0 {
		summed := h.summed && f.store != nil
		resident, err := f.device.(sample.Holder).Hold(t.data.topology, t.drawing(summed))
		if err != nil {
			t.notes = append(t.notes, fmt.Sprintf("the graph's edges stay in the host's memory: %v", err))
			return
		}
		f.resident, f.summed, f.how = resident, summed, h.how
		f.holds.edges, f.holds.summed, f.holds.how = h.edges, summed, h.how
	}
}

// keep copies the features that are here, and those of other nodes that are kept.
func (f *ferry) keep(t *trainer) {
	f.store = t.data.features.There(f.device, f.held)
	if t.shared == nil {
		return
	}
	if kept := t.shared.source.Kept(); kept != nil {
		f.kept = &features.Far{}
		kept.Bring(f.kept, f.held, f.write)
	}
}
