package p3

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// Sums waits for the partial sums of all nodes, and adds them up for this node's
// groups.
func (f *Front) Sums(b *Batch) error {
	if b.flight == nil {
		return fmt.Errorf("p3: step %d was not sent", b.step+1)
	}
	f.begin(b)
	if err := f.wait(&b.flight.takes); err != nil {
		return fmt.Errorf("add up the first layer over all nodes: %w", err)
	}
	f.addUp(b)
	return nil
}

// begin prepares the memory of a step. All steps use it in turn: the results of Send
// leave it, and those of Sums stay until the next call.
func (f *Front) begin(b *Batch) {
	f.arena.Reset()
	rows, sources, widest, ownRows := 0, 0, 0, 0
	for _, g := range b.groups {
		rows, sources = max(rows, g.rows), max(sources, g.block.Cols)
		if g.node == f.self {
			ownRows += g.rows
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
			b.sums = append(b.sums, sums.RowRange(g.row, g.rows))
			b.errors = append(b.errors, errors.RowRange(g.row, g.rows))
		}
	}
}

// partial computes the products of this node's columns for a node's groups, and offers
// them: for each span of leaves the rows of all groups.
func (f *Front) partial(b *Batch, node int, epoch uint32, weights tensor.Matrix) {
	r := &b.nodes[node]
	row := f.cols * f.device.Type().Bytes()
	bytes := len(f.spans[f.self]) * r.rows * row
	if bytes == 0 {
		return
	}
	to := b.flight.theirs[f.self]
	if node != f.self {
		b.flight.partials[node] = room(b.flight.partials[node], bytes)
		to = b.flight.partials[node]
	}
	at := 0
	for _, s := range f.spans[f.self] {
		for _, g := range b.groups[r.first:r.end] {
			f.tree.begin(g.rows, f.cols)
			for i, l := range f.leaves {
				if l.number >= s.First && l.number < s.First+1<<s.Level {
					f.product(f.tree.next(l.number), g, i, weights)
				}
			}
			n := g.rows * row
			plain.Read(f.device, to[at:at+n], f.tree.sum())
			at += n
		}
	}
	if node != f.self {
		f.offer(&b.flight.tags, b.partialTag(epoch, node), to)
	}
}

// product computes the part of a leaf of this node's columns in the sum of a group.
func (f *Front) product(to tensor.Matrix, g *group, at int, weights tensor.Matrix) {
	l := f.leaves[at]
	f.device.Zero(to)
	for i := range f.terms {
		t := &f.terms[i]
		w := of(weights, &t.Param).RowRange(l.first, l.cols)
		y := to.View(0, to.Rows, t.Col, t.Param.Cols)
		if f.columns.sparse {
			f.sparseProduct(y, g, &g.sparse[at], t, w)
			continue
		}
		x := g.dense[t.kind].View(0, to.Rows, l.first-f.columns.first, l.cols)
		f.device.MatMul(y, x, w, tensor.NN, true, nil)
	}
}

// sparseProduct adds the product of sparse rows. They are multiplied before
// aggregation, since the product is narrow.
func (f *Front) sparseProduct(y tensor.Matrix, g *group, p *part, t *term, w tensor.Matrix) {
	d, none := f.device, tensor.Matrix{}
	rows, values := &p.CSR, p.dropped
	if !t.Edges && !f.sources {
		f.targets, values = p.targets(g.rows)
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

// addUp adds up the partial sums of all nodes for this node's groups.
func (f *Front) addUp(b *Batch) {
	r := &b.nodes[f.self]
	row := f.cols * f.device.Type().Bytes()
	for i, g := range b.groups[r.first:r.end] {
		f.tree.begin(g.rows, f.cols)
		for node, theirs := range b.flight.theirs {
			for k, s := range f.spans[node] {
				at := (k*r.rows + g.row) * row
				plain.Write(f.device, f.tree.next(s.First), theirs[at:at+g.rows*row])
			}
		}
		f.device.Combine(b.sums[i], 1, f.tree.sum(), 0, tensor.Matrix{})
	}
}
