package p3

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// Columns returns this node's columns of all vertices, and brings sparse ones. It returns an
// error if they take more than memory; 0: than what the machine has left. The source must be
// ready.
func (s *Source) Columns(ctx context.Context, work peer.Work, l peer.Layout, memory uint64, tally *peer.Tally) (*Columns, error) {
	c, err := s.newColumns(share(s.store.Columns(), work.Self, len(work.Nodes)), l, memory)
	if err == nil && c.sparse {
		err = s.bring(ctx, c, work, tally)
	}
	return c, err
}

// Bring brings dense columns, once there is memory for them.
func (s *Source) Bring(ctx context.Context, c *Columns, work peer.Work, tally *peer.Tally) error {
	if c.sparse {
		return nil
	}
	c.open()
	return s.bring(ctx, c, work, tally)
}

// bring fetches columns from the owners of their shards, from all of them at once.
func (s *Source) bring(ctx context.Context, c *Columns, work peer.Work, tally *peer.Tally) error {
	if c.cols == 0 {
		return nil
	}
	b := &bringing{source: s, columns: c, work: work, layout: c.layout, tally: tally}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running mapped.Group // a local shard's rows may lie in a mapped file
	for node := range work.Nodes {
		running.Go(func() {
			if err := b.from(ctx, node); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("bring columns %d to %d of the features of all vertices: %w", c.first, c.end(), err)
	}
	for i := range c.shards {
		c.valued = c.valued || c.shards[i].values != nil
	}
	return nil
}

// bringing is shared by the goroutines that fetch columns. Each has shards of its own.
type bringing struct {
	source  *Source
	columns *Columns
	work    peer.Work
	layout  peer.Layout
	tally   *peer.Tally
}

// from fetches the shards of a node, or cuts local ones.
func (b *bringing) from(ctx context.Context, node int) error {
	c := &cutter{}
	for shard, owner := range b.layout.Owners {
		first, end := b.layout.Firsts[shard], b.layout.Firsts[shard+1]
		if owner != node {
			continue
		}
		for first < end {
			q := question{first, b.columns.atOnce(end-first, b.source.most), b.columns.span}
			if err := b.ask(ctx, node, c, q); err != nil {
				return err
			}
			n, err := b.columns.take(shard, q, c.answer)
			if err != nil {
				return fmt.Errorf("the answer of node %s is wrong: %w", b.work.Nodes[node], err)
			}
			if err := b.columns.within(); err != nil {
				return err
			}
			first += uint32(n)
		}
	}
	return nil
}

// ask sets the answer of c.
func (b *bringing) ask(ctx context.Context, node int, c *cutter, q question) error {
	s := b.source
	if s.store.Has(q.first) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		return c.cut(s, q)
	}
	if node == b.work.Self {
		return errors.New("a shard is owned by this node, which does not have its features")
	}
	limit := s.most
	if !s.form.Sparse() {
		limit = int(q.rows) * b.columns.form.bytes(q.columns.cols)
	}
	var err error
	c.answer, err = s.peers.Ask(ctx, node, peer.Query{
		Service: peer.Columns, Kind: peer.Shard, Part: s.form.Code(), Body: q.body(), Limit: limit, Tally: b.tally,
	}, c.answer[:0])
	if err == nil && len(c.answer) > limit {
		err = fmt.Errorf("node %s answers with %d bytes, over the limit of %d", b.work.Nodes[node], len(c.answer), limit)
	}
	return err
}
