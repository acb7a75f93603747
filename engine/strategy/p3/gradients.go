package p3

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// Back sets the gradients of the front's weights, the same on all nodes, once the
// errors of all own groups are there. Each node computes those of its columns' rows,
// which need no sum over nodes, and receives the others.
func (f *Front) Back(ctx context.Context, b *Batch, epoch uint32) error {
	if err := f.exchangeErrors(ctx, b, epoch); err != nil {
		return fmt.Errorf("exchange the errors of the first layer: %w", err)
	}
	if err := f.exchangeRows(ctx, b, epoch); err != nil {
		return fmt.Errorf("exchange the gradients of the first layer's weights: %w", err)
	}
	return nil
}

// exchangeErrors offers the errors of this node's groups, receives those of the others,
// and computes this node's rows of the gradient.
func (f *Front) exchangeErrors(ctx context.Context, b *Batch, epoch uint32) error {
	row := f.cols * f.device.Type().Bytes()
	f.takes.begin(ctx)
	for node := range b.nodes {
		if bytes := b.nodes[node].rows * row; node != f.self && bytes > 0 && f.Computes() {
			f.theirs[node] = room(f.theirs[node], bytes)
			f.takes.take(node, peer.Activation, b.tag(epoch, exchange.LaneError), f.theirs[node], b.tally)
		}
	}
	own := &b.nodes[f.self]
	errors := room(f.sent[0], own.rows*row)
	f.sent[0] = errors
	for i, g := range b.groups[own.first:own.end] {
		plain.Read(f.device, errors[g.row*row:(g.row+g.rows)*row], b.errors[i])
	}
	if len(errors) > 0 {
		f.offer(&f.tags, b.tag(epoch, exchange.LaneError), errors)
	}
	if err := f.wait(&f.takes); err != nil {
		return err
	}
	f.tree.begin(1, f.width(f.self))
	if f.Computes() {
		for _, g := range b.order {
			from := errors
			if g.node != f.self {
				from = f.theirs[g.node]
			}
			e := f.errors.RowRange(0, g.rows)
			plain.Write(f.device, e, from[g.row*row:(g.row+g.rows)*row])
			f.back(f.tree.next(g.number), g, e)
		}
	}
	f.sent[1] = room(f.sent[1], f.width(f.self)*f.device.Type().Bytes())
	plain.Read(f.device, f.sent[1], f.tree.sum())
	return nil
}

// width returns how many numbers the gradient of a node's rows has.
func (f *Front) width(node int) (n int) {
	for i := range f.terms {
		n += f.shares[node].cols * f.terms[i].Param.Cols
	}
	return n
}

// back sets to to a group's part of the gradient of this node's rows, term after term.
func (f *Front) back(to tensor.Matrix, g *group, e tensor.Matrix) {
	for i := range f.terms {
		t := &f.terms[i]
		dy := e.View(0, e.Rows, t.Col, t.Param.Cols)
		dw := to.View(0, 1, t.at, f.columns.cols*t.Param.Cols).Reshape(f.columns.cols, t.Param.Cols)
		for k, l := range f.leaves {
			at := l.first - f.columns.first
			own := dw.RowRange(at, l.cols)
			if f.columns.sparse {
				f.sparseBack(own, g, &g.sparse[k], t, dy)
				continue
			}
			x := g.dense[t.kind].View(0, e.Rows, at, l.cols)
			f.device.MatMul(own, x, dy, tensor.TN, false, nil)
		}
	}
}

// sparseBack is the backward of sparseProduct.
func (f *Front) sparseBack(dw tensor.Matrix, g *group, p *part, t *term, dy tensor.Matrix) {
	d, none := f.device, tensor.Matrix{}
	dx := f.shaped(g.block.Cols, dy.Cols)
	if t.Edges {
		d.AggregateBack(dx, &g.block.CSR, none, dy, t.How, false)
	} else {
		d.Zero(dx)
	}
	if t.Own != 0 {
		targets := dx.RowRange(0, dy.Rows)
		d.Combine(targets, 1, targets, t.Own, dy)
	}
	d.AggregateBack(dw, &p.CSR, p.dropped, dx, tensor.Sum, false)
}

// exchangeRows offers this node's rows of the gradient and receives those of the
// others.
func (f *Front) exchangeRows(ctx context.Context, b *Batch, epoch uint32) error {
	tag := b.tag(epoch, exchange.LaneModel)
	if f.Computes() {
		f.offer(&f.tags, tag, f.sent[1])
	}
	f.takes.begin(ctx)
	for node := range b.nodes {
		if node == f.self || !f.has(node) {
			continue
		}
		f.theirs[node] = room(f.theirs[node], f.width(node)*f.device.Type().Bytes())
		f.takes.take(node, peer.Model, tag, f.theirs[node], b.tally)
	}
	if err := f.wait(&f.takes); err != nil {
		return err
	}
	for node, s := range f.shares {
		from := f.theirs[node]
		if node == f.self {
			from = f.sent[1]
		}
		for i := range f.terms {
			p := &f.terms[i].Param
			n := s.cols * p.Cols * f.device.Type().Bytes()
			plain.Write(f.device, of(f.gradients, p).RowRange(s.first, s.cols), from[:n])
			from = from[n:]
		}
	}
	return nil
}
