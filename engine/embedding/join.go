package embedding

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// featuresAt is where nodes exchange features that precede learnt rows: before they meet, after they
// have said what memory they need.
var featuresAt = exchange.Tag{Lane: exchange.LaneMessages, Index: 1 << 16}

// Join has a dataset serve the rows of a table, behind its features if there are any. All nodes of a
// session do so at once: each says the features of its shards.
func (t *Table) Join(ctx context.Context, s *session.Session, data *dataset.Graph) error {
	if t.o.Features > 0 {
		if err := t.expand(data, s.Owns); err != nil {
			return err
		}
		if !s.Alone() {
			if err := exchange.GatherRows(ctx, s.Exchange, featuresAt, &s.Layout, t.fixed, t.o.Features, &s.Start); err != nil {
				return fmt.Errorf("exchange the features of all vertices, which precede learnt rows: %w", err)
			}
		}
		t.choose()
	}
	t.serve(data)
	return nil
}

// expand sets the features of the shards that owns reports.
func (t *Table) expand(data *dataset.Graph, owns func(shard int) bool) error {
	d := cpu.New(1)
	defer d.Close()
	a, err := d.NewArena(0)
	if err != nil {
		return err
	}
	defer a.Close()
	all := tensor.OverF32(t.o.Vertices, t.o.Features, t.fixed)
	for i, shard := range data.Shards {
		if owns(i) {
			data.Features.Expand(d, a, all.RowRange(int(shard.First), shard.Vertices), shard.First)
		}
	}
	return nil
}

// choose finds which vertices have learnt rows, and sets those of all others to zeros, which no step
// changes.
func (t *Table) choose() {
	t.learns = make([]bool, t.o.Vertices)
	for v := range t.learns {
		of := t.fixed[v*t.o.Features:][:t.o.Features]
		for _, column := range t.o.Bare {
			t.learns[v] = t.learns[v] || of[column] != 0
		}
		if !t.learns[v] {
			clear(t.row(t.rows, v))
		}
	}
}

// serve has a dataset serve the rows.
func (t *Table) serve(data *dataset.Graph) {
	data.About.Features = t.o.Features + t.o.Columns
	if t.held != nil {
		data.Features.LearnApart(t.o.Columns, t.shardRows)
		return
	}
	fixed := tensor.Matrix{}
	if t.o.Features > 0 {
		fixed = tensor.OverF32(t.o.Vertices, t.o.Features, t.fixed)
	}
	data.Features.Learn(fixed, tensor.OverF32(t.o.Vertices, t.o.Columns, t.rows))
}

// shardRows returns the rows of a shard; nil: they are elsewhere.
func (t *Table) shardRows(shard int) []float32 { return t.ofShard(t.rows, shard) }

// ofShard returns what some numbers of all rows that are here have of a shard; nil: they are elsewhere.
func (t *Table) ofShard(all []float32, shard int) []float32 {
	l := t.o.Layout
	at := int(l.Firsts[shard])
	if t.held != nil {
		at = t.held.at[shard]
	}
	if at < 0 {
		return nil
	}
	return all[at*t.o.Columns:][:int(l.Firsts[shard+1]-l.Firsts[shard])*t.o.Columns]
}

// Read has a dataset whose shards are all here serve rows that were learnt.
func Read(data *dataset.Graph, columns int, rows []float32) error {
	t := &Table{o: Options{Vertices: int(data.About.Vertices), Columns: columns, Features: data.About.Features}, rows: rows}
	t.fixed = make([]float32, t.o.Vertices*t.o.Features)
	if err := t.expand(data, func(int) bool { return true }); err != nil {
		return err
	}
	t.serve(data)
	return nil
}
