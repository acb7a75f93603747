package embedding

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// Name is that of the table in checkpoints and models. A file that has the rows of some shards has a
// tensor for each, whose name ends in the shard's number.
const Name = "embedding.weight"

// KeepersField is the field of a checkpoint's metadata that has the nodes between which rows are in
// parts.
const KeepersField = "rows_on"

// The prefixes of the rows of the best epoch and of moments, as weights have them.
const (
	bestPrefix   = "best."
	momentPrefix = "optimizer."
)

// Param describes the table as a tensor of a file.
func Param(vertices, columns int) nn.Param {
	return nn.Param{Name: Name, Rows: vertices, Cols: columns}
}

// paramOf describes the rows of a shard as a tensor of a file.
func (t *Table) paramOf(shard int) nn.Param {
	l := t.o.Layout
	return nn.Param{Name: Name + "." + strconv.Itoa(shard), Rows: int(l.Firsts[shard+1] - l.Firsts[shard]), Cols: t.o.Columns}
}

// Section is the section of a file that has these rows.
func Section(prefix string, vertices, columns int, rows func() []float32) checkpoint.Section {
	return section(prefix, Param(vertices, columns), rows)
}

func section(prefix string, p nn.Param, rows func() []float32) checkpoint.Section {
	return checkpoint.Section{Prefix: prefix, Params: []nn.Param{p}, Here: true, Read: func([]float32) []float32 { return rows() }}
}

// Sections implements checkpoint.Extra.
func (t *Table) Sections(int) (all []checkpoint.Section) {
	if t.stream != nil {
		return t.stream.sections(t)
	}
	prefixes := t.prefixes()
	for i, rows := range t.arrays() {
		if t.held == nil {
			all = append(all, Section(prefixes[i], t.o.Vertices, t.o.Columns, func() []float32 { return rows }))
			continue
		}
		for shard := range t.held.at {
			if t.has(shard) {
				all = append(all, section(prefixes[i], t.paramOf(shard), func() []float32 { return t.ofShard(rows, shard) }))
			}
		}
	}
	return all
}

// arrays returns what is kept of rows: themselves, their moments, and those of the best epoch, if there
// are some.
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

// prefixes returns those of arrays in a file.
func (t *Table) prefixes() []string {
	all := []string{""}
	for _, m := range t.moments {
		all = append(all, momentPrefix+m.name+".")
	}
	return append(all, bestPrefix)
}

// Whole has the next checkpoint hold all rows, which come from their owners while it is written.
func (t *Table) Whole(ctx context.Context, x *exchange.Exchange, tag exchange.Tag, tally *peer.Tally) {
	tag.Lane, tag.Index = exchange.LaneLearnt, 0
	t.stream = &stream{ctx: ctx, x: x, tag: tag, tally: tally}
}

// Unbrought returns why the rows of another node did not come that were to be written with those that are
// here, if so.
func (t *Table) Unbrought() error { return t.stream.err }

// has reports whether rows of a shard are here. Of a shard without vertices there are none.
func (t *Table) has(shard int) bool {
	return t.o.Layout.Firsts[shard] < t.o.Layout.Firsts[shard+1] && (t.held == nil || t.held.at[shard] >= 0)
}

// InParts reports whether a file has the rows of some shards by themselves.
func InParts(f *checkpoint.File, shards int) bool {
	for shard := range shards {
		if f.Has(Name + "." + strconv.Itoa(shard)) {
			return true
		}
	}
	return false
}

// Shards sets the marks of the shards whose rows a file has.
func (t *Table) Shards(f *checkpoint.File, has []bool) {
	whole := f.Has(Name)
	for shard := range has {
		has[shard] = whole || t.o.Layout.Firsts[shard] == t.o.Layout.Firsts[shard+1] || f.Has(Name+"."+strconv.Itoa(shard))
	}
}

// Read implements checkpoint.Extra. The rows lie in the file: first those of the last step with
// their moments, then those of the best epoch, if there is one. Where the rows are in parts, in the
// file or here, they are taken by Take.
func (t *Table) Read(f *checkpoint.File, _ int) (rows [][]float32, err error) {
	if t.held != nil {
		return nil, nil
	}
	if !f.Has(Name) && t.o.Layout != nil {
		return t.readParts(f)
	}
	prefixes := t.prefixes()
	if !f.Has(bestPrefix + Name) {
		prefixes = prefixes[:1+len(t.moments)]
	}
	p := Param(t.o.Vertices, t.o.Columns)
	for _, prefix := range prefixes {
		view, err := f.View(prefix, &p)
		if err != nil {
			return nil, err
		}
		rows = append(rows, view)
	}
	return rows, nil
}

// readParts is Read of a file with the rows of each shard by themselves: shard by shard it returns what
// Read does of all rows. Where the file lacks some, they are taken by Take from those of other nodes, if
// there are any.
func (t *Table) readParts(f *checkpoint.File) (rows [][]float32, err error) {
	l, best := t.o.Layout, NoBest
	for shard := range l.Owners {
		if !t.has(shard) {
			continue
		}
		is, p := NoBest, t.paramOf(shard)
		if f.Has(bestPrefix + p.Name) {
			is = BestApart
		}
		if len(rows) == 0 {
			best = is
		}
		if f.Has(p.Name) && is != best {
			return nil, fmt.Errorf("it has the rows of the best epoch of some shards, and not, or only, those of shard %d", shard)
		}
		views, err := t.views(f, nil, shard, best)
		if err != nil {
			return nil, err
		}
		if views == nil && l.Nodes > 1 {
			return nil, nil
		}
		if views == nil {
			return nil, fmt.Errorf("it has the learnt rows of some vertices, and the others, such as those of shard %d, are on other nodes: start the nodes that trained this job, and then {train.resume}", shard)
		}
		rows = append(rows, views...)
	}
	return rows, nil
}

// adoptParts goes on from what readParts has returned.
func (t *Table) adoptParts(rows [][]float32) {
	shards := 0
	for shard := range t.o.Layout.Owners {
		if t.has(shard) {
			shards++
		}
	}
	each := len(rows) / shards
	if each > 1+len(t.moments) {
		t.best = slices.Grow(t.best, len(t.rows))[:len(t.rows)]
	}
	arrays := t.arrays()
	for shard := range t.o.Layout.Owners {
		if !t.has(shard) {
			continue
		}
		for i := range each {
			copy(t.ofShard(arrays[i], shard), rows[i])
		}
		rows = rows[each:]
	}
}

// Adopt implements checkpoint.Extra.
func (t *Table) Adopt(rows [][]float32, _ int) {
	t.best = t.best[:0]
	if len(rows) > 0 && len(rows[0]) < len(t.rows) { // those of a shard
		t.lacks = nil
		t.adoptParts(rows)
		return
	}
	if len(rows) == 0 {
		t.lacks = make([]bool, len(t.o.Layout.Owners))
		for shard := range t.lacks {
			t.lacks[shard] = t.has(shard)
		}
		return
	}
	t.lacks = nil
	copy(t.rows, rows[0])
	rows = rows[1:]
	for _, m := range t.moments {
		copy(m.rows, rows[0])
		rows = rows[1:]
	}
	if len(rows) > 0 {
		t.best = append(t.best, rows[0]...)
	}
}

// Lacks returns the shards whose rows are to be taken from files, since the checkpoint that was adopted
// may have others.
func (t *Table) Lacks() (shards []int) {
	if t == nil {
		return nil
	}
	for shard, lacks := range t.lacks {
		if lacks {
			shards = append(shards, shard)
		}
	}
	return shards
}

// BestRows says what the rows of the best epoch are.
type BestRows uint8

const (
	NoBest    BestRows = iota // no epoch was evaluated
	BestApart                 // the file has them by themselves
	BestNow                   // they are those of the last step
)

// Take takes the rows that are lacking from a file of the step at which the run goes on, as far as it
// has them. If it fails some rows are lacking still.
func (t *Table) Take(f *checkpoint.File, best BestRows) error {
	if best != NoBest && len(t.best) == 0 {
		t.best = append(t.best[:0], t.rows...)
	}
	whole := map[string][]float32{}
	for _, shard := range t.Lacks() {
		views, err := t.views(f, whole, shard, best)
		if err != nil {
			return err
		}
		if views == nil {
			continue
		}
		copy(t.ofShard(t.rows, shard), views[0])
		for i, m := range t.moments {
			copy(t.ofShard(m.rows, shard), views[1+i])
		}
		switch best {
		case BestApart:
			copy(t.ofShard(t.best, shard), views[1+len(t.moments)])
		case BestNow:
			copy(t.ofShard(t.best, shard), views[0])
		}
		t.lacks[shard] = false
	}
	return nil
}

// views returns what a file has of a shard: its rows, their moments and, if they are by themselves, those
// of the best epoch; nil: it has none. whole are the tensors of all shards' rows that were read before.
func (t *Table) views(f *checkpoint.File, whole map[string][]float32, shard int, best BestRows) (all [][]float32, err error) {
	p := t.paramOf(shard)
	if !f.Has(Name) && !f.Has(p.Name) {
		return nil, nil
	}
	prefixes := t.prefixes()
	if best != BestApart {
		prefixes = prefixes[:1+len(t.moments)]
	}
	for _, prefix := range prefixes {
		if view, first := whole[prefix], int(t.o.Layout.Firsts[shard])*t.o.Columns; view != nil {
			all = append(all, view[first:][:p.Rows*p.Cols])
			continue
		}
		of := p
		if f.Has(Name) {
			of = Param(t.o.Vertices, t.o.Columns)
		}
		view, err := f.View(prefix, &of)
		if err != nil {
			return nil, fmt.Errorf("read the learnt rows of shard %d: %w", shard, err)
		}
		if f.Has(Name) {
			whole[prefix] = view
			view = view[int(t.o.Layout.Firsts[shard])*t.o.Columns:][:p.Rows*p.Cols]
		}
		all = append(all, view)
	}
	return all, nil
}

// MaxBytes implements checkpoint.Extra: of any node's file.
func (t *Table) MaxBytes() uint64 {
	return uint64(2+len(t.moments)) * 4 * uint64(t.o.Vertices) * uint64(t.o.Columns)
}
