package p3

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Sums computes the first layer's sums: what this node's columns add to those of all
// groups, and of its own groups what all nodes' columns add up to. key is that of the
// step's dropout.
func (f *Front) Sums(ctx context.Context, b *Batch, epoch uint32, key keyed.Key) error {
	if b.key != key {
		b.pass.Key = key
		if b.pass.InputDropout(nil).P > 0 { // a batch that is there for many steps
			f.lay(b, Hand{f.device, f.scratch, b.rows}, key)
		}
	}
	f.begin(b)
	own := b.nodes[f.self].rows
	f.takes.begin(ctx)
	for node := range f.theirs {
		bytes := len(f.spans[node]) * own * f.cols * f.device.Type().Bytes()
		f.theirs[node] = room(f.theirs[node], bytes)
		if node != f.self && bytes > 0 {
			tag := b.tag(epoch, exchange.LanePartial)
			tag.Index = uint32(f.self)
			f.takes.take(node, strategy.Activation, tag, f.theirs[node], b.tally)
		}
	}
	for i := range f.nodes {
		node := (f.self + 1 + i) % f.nodes // not all at once for the same, own ones last
		f.partial(b, node, epoch)
	}
	if err := f.wait(); err != nil {
		return fmt.Errorf("add up the first layer over all nodes: %w", err)
	}
	f.addUp(b)
	return nil
}

// begin makes memory ready for a step.
func (f *Front) begin(b *Batch) {
	f.arena.Reset()
	rows, sources, widest, ownRows := 0, 0, 0, 0
	for _, g := range b.groups {
		rows, sources = max(rows, g.block.Rows), max(sources, g.block.Cols)
		if g.node == f.self {
			ownRows += g.block.Rows
		}
	}
	gradient := 0
	for _, t := range f.terms {
		widest = max(widest, t.Param.Cols)
		gradient = t.at + f.columns.cols*t.Param.Cols
	}
	flat := rows * f.cols
	if f.columns.sparse {
		flat = max(flat, sources*widest)
	}
	f.flat = f.arena.Alloc(f.device.Type(), 1, flat)
	f.errors = f.arena.Alloc(f.device.Type(), rows, f.cols)
	f.tree.reset(f.device, f.arena, max(rows*f.cols, gradient))
	b.sums, b.errors = b.sums[:0], b.errors[:0]
	sums, errors := f.arena.Alloc(f.device.Type(), ownRows, f.cols), f.arena.Alloc(f.device.Type(), ownRows, f.cols)
	f.device.Zero(errors)
	for _, g := range b.groups {
		if g.node == f.self {
			b.sums = append(b.sums, sums.RowRange(g.row, g.block.Rows))
			b.errors = append(b.errors, errors.RowRange(g.row, g.block.Rows))
		}
	}
}

// partial makes what this node's columns add to the sums of a node's groups, and offers
// it: for each span of leaves the rows of all groups.
func (f *Front) partial(b *Batch, node int, epoch uint32) {
	r := &b.nodes[node]
	row := f.cols * f.device.Type().Bytes()
	bytes := len(f.spans[f.self]) * r.rows * row
	if bytes == 0 {
		return
	}
	to := f.theirs[f.self]
	if node != f.self {
		f.partials[node] = room(f.partials[node], bytes)
		to = f.partials[node]
	}
	at := 0
	for _, s := range f.spans[f.self] {
		for _, g := range b.groups[r.first:r.end] {
			f.tree.begin(g.block.Rows, f.cols)
			for i, l := range f.leaves {
				if l.number >= s.First && l.number < s.First+1<<s.Level {
					f.product(f.tree.next(l.number), g, i)
				}
			}
			n := g.block.Rows * row
			read(f.device, to[at:at+n], f.tree.sum())
			at += n
		}
	}
	if node != f.self {
		tag := b.tag(epoch, exchange.LanePartial)
		tag.Index = uint32(node)
		f.offer(tag, to)
	}
}

// product is what a leaf of this node's columns adds to the sum of a group.
func (f *Front) product(to tensor.Matrix, g *group, at int) {
	l := f.leaves[at]
	f.device.Zero(to)
	for i := range f.terms {
		t := &f.terms[i]
		w := of(f.weights, &t.Param).RowRange(l.first, l.cols)
		y := to.View(0, to.Rows, t.Col, t.Param.Cols)
		if f.columns.sparse {
			f.sparseProduct(y, g, &g.sparse[at], t, w)
			continue
		}
		x := g.dense[t.kind].View(0, to.Rows, l.first-f.columns.first, l.cols)
		f.device.MatMul(y, x, w, tensor.NN, true, nil)
	}
}

// sparseProduct adds the product of sparse rows: they are multiplied first, and what
// that makes is narrow.
func (f *Front) sparseProduct(y tensor.Matrix, g *group, p *part, t *term, w tensor.Matrix) {
	d, none := f.device, tensor.Matrix{}
	rows, values := &p.CSR, p.dropped
	if !t.Edges {
		f.targets, values = p.targets(g.block.Rows)
		rows = &f.targets
	}
	x := f.shaped(rows.Rows, w.Cols)
	d.Aggregate(x, rows, values, w, tensor.Sum, false, nil)
	if t.Own != 0 {
		d.Combine(y, 1, y, t.Own, x.RowRange(0, y.Rows))
	}
	if t.Edges {
		d.Aggregate(y, &g.block.CSR, none, x, t.How, true, nil)
	}
}

// addUp adds up what all nodes have made for this node's groups.
func (f *Front) addUp(b *Batch) {
	r := &b.nodes[f.self]
	row := f.cols * f.device.Type().Bytes()
	for i, g := range b.groups[r.first:r.end] {
		f.tree.begin(g.block.Rows, f.cols)
		for node := range f.theirs {
			for k, s := range f.spans[node] {
				at := (k*r.rows + g.row) * row
				write(f.device, f.tree.next(s.First), f.theirs[node][at:at+g.block.Rows*row])
			}
		}
		f.device.Combine(b.sums[i], 1, f.tree.sum(), 0, tensor.Matrix{})
	}
}
