package p3

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Hand is the device and memory that Ahead computes with.
type Hand struct {
	Device  tensor.Device
	Scratch tensor.Arena
	Rows    tensor.Arena // of the batch alone
}

// Ahead prepares a batch whose groups have been added: nothing of it depends on
// weights. key is that of its step's dropout. Where nodes send blocks it waits for the
// step before, and for all nodes.
func (f *Front) Ahead(ctx context.Context, b *Batch, h Hand, step int, key keyed.Key, tally *peer.Tally) error {
	b.step, b.tally = step, tally
	if !f.resample {
		epoch, err := f.turn.await(ctx, b)
		if err != nil {
			return err
		}
		if err := f.tell(ctx, b, epoch); err != nil {
			return fmt.Errorf("exchange the first blocks of step %d: %w", step+1, err)
		}
		f.turn.pass()
	}
	if err := b.gather(f); err != nil {
		return err
	}
	if f.Computes() {
		for _, g := range b.groups {
			if g.node != f.self && f.columns.sparse && f.model.Hops() > 0 {
				g.block.Transpose()
			}
		}
	}
	b.rows = h.Rows
	f.lay(b, h, key)
	return nil
}

// tell sends this node's blocks to all others, and receives theirs.
func (f *Front) tell(ctx context.Context, b *Batch, epoch uint32) error {
	if f.nodes == 1 {
		return nil
	}
	// Since all others have sent their blocks of the step before, they have received
	// those of the one before that.
	m := &f.ring[f.offered%2]
	f.offered++
	for _, t := range m.tags {
		if err := f.exchange.Withdraw(ctx, t); err != nil {
			return err
		}
	}
	f.encode(m, b)
	head, body := b.tag(epoch, exchange.LaneBlock), b.tag(epoch, exchange.LaneBlock)
	body.Index = 1
	m.tags = append(m.tags[:0], head, body)
	f.exchange.Offer(head, m.head[:])
	f.exchange.Offer(body, m.body)

	f.blocks.begin(ctx)
	for node := range b.nodes {
		if node != f.self {
			f.blocks.take(node, peer.Topology, head, b.nodes[node].head[:], b.tally)
		}
	}
	if err := f.blocks.wait(); err != nil || !f.Computes() {
		return err
	}
	for node := range b.nodes {
		if node == f.self {
			continue
		}
		r := &b.nodes[node]
		_, bytes, err := f.announced(r)
		if err != nil {
			f.blocks.cancel(err)
			break
		}
		r.message = room(r.message, bytes)
		if bytes > 0 {
			f.blocks.take(node, peer.Topology, body, r.message, b.tally)
		}
	}
	return f.blocks.wait()
}

// encode writes the message of a batch.
func (f *Front) encode(m *message, b *Batch) {
	own := b.nodes[f.self].given
	m.body = room(m.body, bytesOfBlocks(own))[:0]
	for i := range own {
		m.body = appendBlock(m.body, own[i].grain, own[i].of())
	}
	binary.LittleEndian.PutUint32(m.head[:], uint32(len(own)))
	binary.LittleEndian.PutUint64(m.head[4:], uint64(len(m.body)))
}

// bytesOfBlocks returns the size of some groups in a message.
func bytesOfBlocks(all []given) (bytes int) {
	for i := range all {
		bytes += blockBytes(all[i].of())
	}
	return bytes
}

// lay computes the input rows of all groups' terms, in this node's columns.
func (f *Front) lay(b *Batch, h Hand, key keyed.Key) {
	b.key, b.pass.Key = key, key
	b.rows.Reset()
	if !f.Computes() {
		return
	}
	for _, g := range b.groups {
		if f.columns.sparse {
			f.laySparse(b, h, g)
		} else {
			f.layDense(b, h, g)
		}
	}
}

func (f *Front) layDense(b *Batch, h Hand, g *group) {
	d, none := h.Device, tensor.Matrix{}
	h.Scratch.Reset()
	x := h.Scratch.Alloc(d.Type(), g.block.Cols, f.columns.cols)
	f.columns.dense(d, h.Scratch, x, g.block.Vertices)
	if drop := b.pass.InputDropout(g.block.Vertices); drop.P > 0 {
		x = f.columns.drop(d, h.Scratch, x, drop, &b.window)
	}
	g.dense = g.dense[:0]
	for _, k := range f.kinds {
		y := b.rows.Alloc(d.Type(), g.rows, f.columns.cols)
		if k.own != 0 {
			own := x
			if !f.sources {
				own = x.RowRange(g.block.Own, g.rows)
			}
			d.Combine(y, k.own, own, 0, none)
		}
		if k.edges {
			d.Aggregate(y, &g.block.CSR, none, x, k.how, k.own != 0, nil)
		}
		g.dense = append(g.dense, y)
	}
}

func (f *Front) laySparse(b *Batch, h Hand, g *group) {
	for len(g.sparse) < len(f.leaves) {
		g.sparse = append(g.sparse, part{})
	}
	for i := range f.leaves {
		p, l := &g.sparse[i], f.leaves[i]
		f.columns.fill(p, l.span, g.block.Vertices)
		p.dropped = tensor.Matrix{}
		if drop := b.pass.InputDropout(g.block.Vertices); drop.P > 0 {
			p.dropped = b.rows.Alloc(h.Device.Type(), 1, p.Entries())
			h.Device.DropValues(p.dropped, tensor.Matrix{}, &p.CSR, drop) // by columns of the whole
		}
		p.rebase(l.span)
	}
}
