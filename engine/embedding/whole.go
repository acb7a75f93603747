package embedding

import (
	"context"
	"fmt"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
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
	err   error     // why rows of another node did not come
}

// Offer offers the rows of this node's shards to nodes that write all rows into a file, when the run is
// done. They stay as they are until it has ended.
func Offer(t *Table, x *exchange.Exchange, tag exchange.Tag) {
	tag.Lane, tag.Index = exchange.LaneLearnt, 0
	for _, rows := range t.arrays() {
		_ = windows(t, func(shard, first, n int) error {
			if t.o.Layout.Owners[shard] == t.o.Self {
				x.Offer(tag, plain.Bytes(t.ofShard(rows, shard)[first:][:n]))
			}
			tag.Index++
			return nil
		})
	}
}

// windows calls do for runs of numbers of the shards' rows, in their order, until it fails. All nodes
// have the same.
func windows(t *Table, do func(shard, first, n int) error) error {
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

// sections returns the sections of a file with all rows.
func (s *stream) sections(t *Table) (all []checkpoint.Section) {
	prefixes := t.prefixes()
	for i, rows := range t.arrays() {
		of := section(prefixes[i], Param(t.o.Vertices, t.o.Columns), nil)
		of.Parts = func(write func([]float32) error) error { return s.pass(t, i, rows, write) }
		all = append(all, of)
	}
	return all
}

// pass passes one array of all rows on, of which some are here.
func (s *stream) pass(t *Table, array int, rows []float32, write func([]float32) error) error {
	tag, each := s.tag, uint32(0)
	_ = windows(t, func(int, int, int) error { each++; return nil })
	tag.Index = uint32(array) * each
	return windows(t, func(shard, first, n int) error {
		defer func() { tag.Index++ }()
		if t.held.at[shard] >= 0 {
			return write(t.ofShard(rows, shard)[first:][:n])
		}
		if s.some == nil {
			s.some = make([]float32, window)
		}
		if err := s.x.Take(s.ctx, t.o.Layout.Owners[shard], peer.Model, tag, plain.Bytes(s.some[:n]), s.tally); err != nil {
			s.err = fmt.Errorf("bring the learnt rows of shard %d: %w", shard, err)
			return s.err
		}
		return write(s.some[:n])
	})
}

// BestOf returns the rows of the best epoch that a file has of a shard by itself; nil: it has none.
func BestOf(f *checkpoint.File, shard, columns int) ([]float32, error) {
	p := nn.Param{Name: Name + "." + strconv.Itoa(shard), Cols: columns}
	if p.Rows = f.Height(bestPrefix + p.Name); p.Rows == 0 {
		return nil, nil
	}
	return f.View(bestPrefix, &p)
}

// Joined is the section of a file that has the rows of the best epoch of all vertices, which lie shard by shard.
func Joined(vertices, columns int, shards [][]float32) checkpoint.Section {
	of := section(bestPrefix, Param(vertices, columns), nil)
	of.Parts = func(write func([]float32) error) error {
		for _, rows := range shards {
			if err := write(rows); err != nil {
				return err
			}
		}
		return nil
	}
	return of
}
