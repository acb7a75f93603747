package leap

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// migration deals roots to where they are, in slots: as many models as nodes tour them,
// each with the roots of its slice of the batch. In column s of the tour node m has
// model (m+s) mod N.
type migration struct {
	layout        strategy.Layout
	deterministic bool
	places        places
	tuner         tuner

	grains strategy.Grains
	sizes  []int // of the group of each slice and node
	kept   []int // columns, ascending
	pool   []uint32
	cut    []uint32 // this node's roots, slice by slice
	ends   []int    // of each slice in cut
}

// Deal implements strategy.Dealer.
func (d *migration) Deal(to []strategy.Group, batch []uint32, node int) []strategy.Group {
	d.places.find(batch)
	if d.deterministic {
		return d.dealGrains(to[:0], batch, node)
	}
	return d.dealSlices(to[:0], batch, node)
}

// dealSlices makes a slot of each column that is kept. The roots of the others go to
// those, on the same node and in the same step.
func (d *migration) dealSlices(to []strategy.Group, batch []uint32, node int) []strategy.Group {
	d.count()
	d.choose()
	d.gather(batch, node)
	slots := d.tuner.Slots
	most := len(d.cut)/slots + 1
	for j := range slots {
		var g *strategy.Group
		to, g = strategy.More(to)
		d.stop(g, node, j)
		g.Roots = append(g.Roots, d.slice(g.Model)...)
	}
	pool := d.pool
	// In the order of models, each takes from the pool up to the most: all of it, since
	// slots times the most is more than the node has roots.
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

// stop says which model a slot of a node has, and where that was before. The first is
// here where all models are the same when a step begins; else After says where it is.
func (d *migration) stop(g *strategy.Group, node, slot int) {
	n := d.layout.Nodes
	g.Slot, g.Model, g.From = slot, (node+d.kept[slot])%n, -1
	if slot > 0 {
		g.From = (g.Model - d.kept[slot-1] + n) % n
	}
}

var _ strategy.Guide = (*migration)(nil)

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
		for _, node := range strategy.Slice(d.places.nodes, model, n) {
			d.sizes[model*n+int(node)]++
		}
	}
}

// choose keeps as many columns as there are slots: those go whose least group is the
// smallest, the first of equal ones. A whole column goes, on all nodes, so that no two
// models ever meet.
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

// least is the size of a column's smallest group.
func (d *migration) least(column int) int {
	n := d.layout.Nodes
	size := d.sizes[column*n] // of node 0
	for node := 1; node < n; node++ {
		size = min(size, d.sizes[(node+column)%n*n+node])
	}
	return size
}

// gather finds a node's roots: slice by slice, and those of slices whose column went,
// in the order of the batch.
func (d *migration) gather(batch []uint32, node int) {
	n := d.layout.Nodes
	d.cut, d.ends, d.pool = d.cut[:0], d.ends[:0], d.pool[:0]
	for model := range n {
		first := len(d.cut)
		for i, at := range strategy.Slice(d.places.nodes, model, n) {
			if int(at) == node {
				d.cut = append(d.cut, strategy.Slice(batch, model, n)[i])
			}
		}
		d.ends = append(d.ends, len(d.cut))
		if !slices.Contains(d.kept, (model-node+n)%n) {
			d.pool = append(d.pool, d.cut[first:]...)
		}
	}
}

// slice is the node's roots of a model's slice.
func (d *migration) slice(model int) []uint32 {
	if model == 0 {
		return d.cut[:d.ends[0]]
	}
	return d.cut[d.ends[model-1]:d.ends[model]]
}

// dealGrains fills slots with whole grains, as evenly as they are: groups that slices
// cut would depend on the number of nodes. A slot without any has an empty group, since
// its model passes all the same.
func (d *migration) dealGrains(to []strategy.Group, batch []uint32, node int) []strategy.Group {
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
			var g *strategy.Group
			to, g = strategy.More(to)
			d.stop(g, node, slot)
			g.Roots, g.Grain = append(g.Roots, roots...), shard
			if len(to)-1 > first {
				g.From = -1 // the first group of the slot has brought it
			}
		}
		if len(to) == first {
			var g *strategy.Group
			to, g = strategy.More(to)
			d.stop(g, node, slot)
		}
	}
	return to
}

// Note implements strategy.Dealer.
func (d *migration) Note(seconds float64) { d.tuner.note(seconds) }

// Tuning implements strategy.Dealer.
func (d *migration) Tuning() strategy.Tuning { return d.tuner.Tuning }

// Restore implements strategy.Dealer.
func (d *migration) Restore(t strategy.Tuning) { d.tuner.restore(t) }
