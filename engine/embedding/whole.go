package embedding

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A stream brings all rows to a node that writes them into one file, some at a time.
type stream struct {
	ctx   context.Context
	x     *exchange.Exchange
	tag   exchange.Tag
	tally *peer.Tally
	some  []float32 // of another node
}

// Offer offers the rows of this node's shards to nodes that write all rows into a file, when the run is
// done. They stay as they are until it has ended.
func (t *Table) Offer(x *exchange.Exchange, tag exchange.Tag) {
	tag.Lane, tag.Index = exchange.LaneLearnt, 0
	for _, rows := range t.arrays() {
		_ = t.windows(func(shard, first, n int) error {
			if t.o.Layout.Owners[shard] == t.o.Self {
				x.Offer(tag, plain.Bytes(t.ofShard(rows, shard)[first:][:n]))
			}
			tag.Index++
			return nil
		})
	}
}

// Whole has the table's next checkpoint hold all rows, which come from their owners while it is written.
func (t *Table) Whole(ctx context.Context, x *exchange.Exchange, tag exchange.Tag, tally *peer.Tally) {
	tag.Lane, tag.Index = exchange.LaneLearnt, 0
	t.stream = &stream{ctx: ctx, x: x, tag: tag, tally: tally}
}

// arrays returns what is kept of rows: themselves, their moments, and those of the best epoch.
func (t *Table) arrays() [][]float32 {
	all := [][]float32{t.rows}
	for _, m := range t.moments {
		all = append(all, m.rows)
	}
	if len(t.best) > 0 {
		all = append(all, t.best)
	}
	return all
}

// windows calls do for runs of numbers of the shards' rows, in their order, until it fails. All nodes
// have the same.
func (t *Table) windows(do func(shard, first, n int) error) error {
	l := t.o.Layout
	for shard := range l.Owners {
		numbers := int(l.Firsts[shard+1]-l.Firsts[shard]) * t.o.Columns
		for first := 0; first < numbers; first += window {
			if err := do(shard, first, min(window, numbers-first)); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole returns the sections of a file with all rows.
func (t *Table) whole() (all []checkpoint.Section) {
	prefixes := []string{""}
	for _, m := range t.moments {
		prefixes = append(prefixes, momentPrefix+m.name+".")
	}
	prefixes = append(prefixes, bestPrefix)
	for i, rows := range t.arrays() {
		s := section(prefixes[i], Param(t.o.Vertices, t.o.Columns), nil)
		s.Parts = func(write func([]float32) error) error { return t.stream.pass(t, i, rows, write) }
		all = append(all, s)
	}
	return all
}

// pass passes one array of all rows on, of which some are here.
func (s *stream) pass(t *Table, array int, rows []float32, write func([]float32) error) error {
	tag, each := s.tag, uint32(0)
	_ = t.windows(func(int, int, int) error { each++; return nil })
	tag.Index = uint32(array) * each
	return t.windows(func(shard, first, n int) error {
		defer func() { tag.Index++ }()
		if t.held.at[shard] >= 0 {
			return write(t.ofShard(rows, shard)[first:][:n])
		}
		if s.some == nil {
			s.some = make([]float32, window)
		}
		if err := s.x.Take(s.ctx, t.o.Layout.Owners[shard], peer.Model, tag, plain.Bytes(s.some[:n]), s.tally); err != nil {
			return fmt.Errorf("bring the learnt rows of shard %d: %w", shard, err)
		}
		return write(s.some[:n])
	})
}
