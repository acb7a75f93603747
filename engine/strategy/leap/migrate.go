package leap

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// migration deals roots to their nodes, in slots. As many models as nodes tour them,
// each with the roots of its slice of the batch. In column s of the tour node m has
// model (m+s) mod N.
type migration struct {
	layout        peer.Layout
	deterministic bool
	places        places
	tuner         tuner

	grains deal.Grains
	sizes  []int // of the group of each slice and node
	kept   []int // columns, ascending
	pool   []uint32
	cut    []uint32 // this node's roots, slice by slice
	ends   []int    // of each slice in cut
}

// Deal implements deal.Dealer.
func (d *migration) Deal(to []deal.Group, batch []uint32, node int) []deal.Group {
	d.places.find(batch)
	if d.deterministic {
		return d.dealGrains(to[:0], batch, node)
	}
	return d.dealSlices(to[:0], batch, node)
}

// dealSlices makes a slot of each column that is kept. The roots of the others join
// these, on the same node and in the same step.
func (d *migration) dealSlices(to []deal.Group, batch []uint32, node int) []deal.Group {
	d.count()
	d.choose()
	d.gather(batch, node)
	slots := d.tuner.Slots
	most := len(d.cut)/slots + 1
	for j := range slots {
		var g *deal.Group
		to, g = deal.More(to)
		d.stop(g, node, j)
		g.Roots = append(g.Roots, d.slice(g.Model)...)
	}
	pool := d.pool
	// In the order of models, each takes up to the most from the pool. This takes all
	// of it, since slots times the most is more than the node has roots.
	for model := range d.layout.Nodes {
		for i := range to {
			if g := &to[i]; g.Model == model {
				n := max(0, min(len(pool), most-len(g.Roots)))
				g.Roots = append(g.Roots, pool[:n]...)
				pool = pool[n:]
			}
		}
	}
	return to
}

// stop sets which model a slot of a node has, and where that was before. The first
// model is local where all models are the same when a step begins; else After returns
// its place.
func (d *migration) stop(g *deal.Group, node, slot int) {
	n := d.layout.Nodes
	g.Slot, g.Model, g.From = slot, (node+d.kept[slot])%n, -1
	if slot > 0 {
		g.From = (g.Model - d.kept[slot-1] + n) % n
	}
}

var _ deal.Guide = (*migration)(nil)

// After implements strategy.Guide. Slots are those of slices: models that differ never
// have whole grains.
func (d *migration) After(batch []uint32, model int) int {
	d.places.find(batch)
	d.count()
	d.choose()
	n := d.layout.Nodes
	return (model - d.kept[len(d.kept)-1] + n) % n
}

// count counts the roots of each slice that each node has.
func (d *migration) count() {
	n := d.layout.Nodes
	d.sizes = slices.Grow(d.sizes[:0], n*n)[:n*n]
	clear(d.sizes)
	for model := range n {
		for _, node := range deal.Slice(d.places.nodes, model, n) {
			d.sizes[model*n+int(node)]++
		}
	}
}

// choose keeps as many columns as there are slots. It drops those whose smallest group
// is the smallest, the first of equal ones. A whole column goes, on all nodes, so that
// no two models ever meet.
func (d *migration) choose() {
	n := d.layout.Nodes
	d.kept = d.kept[:0]
	for column := range n {
		d.kept = append(d.kept, column)
	}
	for len(d.kept) > d.tuner.Slots {
		worst, least := 0, -1
		for i, column := range d.kept {
			if size := d.least(column); least < 0 || size < least {
				worst, least = i, size
			}
		}
		d.kept = slices.Delete(d.kept, worst, worst+1)
	}
}

// least returns the size of a column's smallest group.
func (d *migration) least(column int) int {
	n := d.layout.Nodes
	size := d.sizes[column*n] // of node 0
	for node := 1; node < n; node++ {
		size = min(size, d.sizes[(node+column)%n*n+node])
	}
	return size
}

// gather finds a node's roots: slice by slice, and those of slices whose column was
// dropped, in the order of the batch.
func (d *migration) gather(batch []uint32, node int) {
	n := d.layout.Nodes
	d.cut, d.ends, d.pool = d.cut[:0], d.ends[:0], d.pool[:0]
	for model := range n {
		first := len(d.cut)
		for i, at := range deal.Slice(d.places.nodes, model, n) {
			if int(at) == node {
				d.cut = append(d.cut, deal.Slice(batch, model, n)[i])
			}
		}
		d.ends = append(d.ends, len(d.cut))
		if !slices.Contains(d.kept, (model-node+n)%n) {
			d.pool = append(d.pool, d.cut[first:]...)
		}
	}
}

// slice returns the node's roots of a model's slice.
func (d *migration) slice(model int) []uint32 {
	if model == 0 {
		return d.cut[:d.ends[0]]
	}
	return d.cut[d.ends[model-1]:d.ends[model]]
}

// dealGrains fills slots with whole grains as evenly as possible: groups cut by slices
// would depend on the number of nodes. A slot without grains has an empty group, since
// its model still passes.
func (d *migration) dealGrains(to []deal.Group, batch []uint32, node int) []deal.Group {
	d.pool = d.places.of(d.pool[:0], batch, node)
	d.grains.Cut(&d.layout, d.pool)
	d.kept = d.kept[:0]
	shard := 0
	for slot := range d.tuner.Slots {
		d.kept = append(d.kept, slot)
		first := len(to)
		for ; shard < len(d.layout.Owners); shard++ {
			roots := d.grains.Of(shard)
			if len(roots) == 0 {
				continue
			}
			if d.grains.Run(shard, d.tuner.Slots) != slot {
				break
			}
			var g *deal.Group
			to, g = deal.More(to)
			d.stop(g, node, slot)
			g.Roots, g.Grain = append(g.Roots, roots...), shard
			if len(to)-1 > first {
				g.From = -1 // the model came with the first group of the slot
			}
		}
		if len(to) == first {
			var g *deal.Group
			to, g = deal.More(to)
			d.stop(g, node, slot)
		}
	}
	return to
}

// Note implements deal.Dealer.
func (d *migration) Note(seconds float64) { d.tuner.note(seconds) }

// Tuning implements deal.Dealer.
func (d *migration) Tuning() deal.Tuning { return d.tuner.Tuning }

// Restore implements deal.Dealer.
func (d *migration) Restore(t deal.Tuning) { d.tuner.restore(t) }
