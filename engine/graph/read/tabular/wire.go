package tabular

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/intids"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// A Look is what another machine says of a source that lies there.
type Look struct {
	Format string
	Tables []LookTable
	// Targets means that labels can be had as numbers.
	Targets bool `json:",omitempty"`
}

// LookTable describes a table of a Look.
type LookTable struct {
	Kind  int
	Name  string
	Unit  string
	Width int
	Text  bool
	Notes []string
	// Columns distinguishes the names of features; "": not known.
	Columns string
	// Labels are the names of the columns of labels.
	Labels []string `json:",omitempty"`
}

// A Query asks for the rows of one table of a source.
type Query struct {
	Path    string
	Format  string
	Kind    int
	Text    bool // ids come as text, else as integers
	IDsOnly bool
	Words   bool // labels come as text
	// LabelColumns are the names of the columns of labels that are asked for.
	LabelColumns []string `json:",omitempty"`
	Targets      bool     `json:",omitempty"` // labels come as numbers
	// Fractions: who asks for classes also takes IsFraction for an answer.
	Fractions bool `json:",omitempty"`
}

// IsNotInteger reports whether a scan for integers has met an id that is none, and
// NotInteger is that error.
func IsNotInteger(err error) bool { return errors.Is(err, errNotInteger) }

func NotInteger() error { return errNotInteger }

// IsFraction reports whether a scan for classes has met a number that is not whole, and
// Fraction is that error.
func IsFraction(err error) bool { return errors.Is(err, errFraction) }

func Fraction() error { return errFraction }

// errFraction is what a scan ends with for another machine that knows what to do then.
var errFraction = fmt.Errorf("a label is %w", source.ErrFraction)

// LookAt describes the tables at a path of this machine for another one. labels are the names of the
// columns of labels. limit bounds what it holds.
func LookAt(ctx context.Context, path, format string, labels []string, limit uint64) (l Look, err error) {
	files, err := findTables(ctx, path, endingsOf(format))
	if err != nil {
		return l, err
	}
	set, err := openTableSet(ctx, files, opening{limit: limit, labels: labels})
	if err != nil {
		return l, err
	}
	for kind, t := range set {
		if t != nil {
			a := t.about()
			l.Tables = append(l.Tables, LookTable{kind, a.name, a.unit, a.width, a.text, a.notes, a.columns, a.labels})
		}
	}
	l.Format, l.Targets = format, true
	return l, set.close()
}

// ScanPart yields the rows of a table in batches encoded for another machine. limit bounds
// what it holds.
func ScanPart(ctx context.Context, q Query, limit uint64, yield func([]byte) error) (err error) {
	if q.Kind < int(edgesTable) || q.Kind > int(splitsTable) {
		return fmt.Errorf("there is no table of kind %d", q.Kind)
	}
	kind := tableKind(q.Kind)
	files, err := findTables(ctx, q.Path, endingsOf(q.Format))
	if err != nil {
		return err
	}
	file, nodes := files.file(kind)
	gone := fmt.Errorf("the %s have gone: import again when nothing writes to the source", kind)
	if file == "" {
		return gone
	}
	t, err := openTable(ctx, file, kind, nodes, opening{limit: limit, labels: q.LabelColumns})
	if errors.Is(err, errNoColumns) {
		return gone
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	width := t.about().width
	if q.IDsOnly {
		width = 0
	}
	var seen intids.Seen
	err = t.scan(ctx, scanning{text: q.Text, idsOnly: q.IDsOnly, words: q.Words, targets: q.Targets}, func(b *rowBatch) error {
		if q.IDsOnly && !q.Text {
			for i := range kind.ids() {
				b.ids[i].ints = seen.Only(b.ids[i].ints)
			}
		}
		return yield(appendBatch(nil, b, kind, width, q))
	})
	if q.Fractions && errors.Is(err, source.ErrFraction) {
		return errFraction
	}
	return err
}

// The ways in which a column of ids travels.
const (
	wireShort = iota // 4 bytes an integer, from 0 on
	wireLong         // 8 bytes
	wireText         // the ends, of 4 bytes, and all ids one after another
)

func appendBatch(out []byte, b *rowBatch, kind tableKind, width int, q Query) []byte {
	little := binary.LittleEndian
	out = little.AppendUint32(out, uint32(b.n))
	for i := range kind.ids() {
		c := &b.ids[i]
		if q.Text {
			out = appendText(append(out, wireText), c)
			continue
		}
		count := func() {
			if q.IDsOnly {
				out = little.AppendUint32(out, uint32(len(c.ints))) // each id once
			}
		}
		all := uint64(0)
		for _, v := range c.ints {
			all |= uint64(v)
		}
		if all > math.MaxUint32 {
			out = append(out, wireLong)
			count()
			for _, v := range c.ints {
				out = little.AppendUint64(out, uint64(v))
			}
			continue
		}
		out = append(out, wireShort)
		count()
		for _, v := range c.ints {
			out = little.AppendUint32(out, uint32(v))
		}
	}
	if kind != edgesTable {
		for _, row := range b.rows {
			out = little.AppendUint64(out, row)
		}
	}
	switch {
	case q.IDsOnly:
	case kind == labelsTable && q.Words:
		out = appendText(out, &b.words)
	case kind == labelsTable && !q.Targets:
		for _, l := range b.labels {
			out = little.AppendUint32(out, uint32(l))
		}
	case kind == splitsTable:
		out = append(out, b.marks...)
	default:
		for _, f := range b.floats[:b.n*width] {
			out = little.AppendUint32(out, math.Float32bits(f))
		}
	}
	return out
}

func appendText(out []byte, c *idColumn) []byte {
	for _, end := range c.ends {
		out = binary.LittleEndian.AppendUint32(out, uint32(end))
	}
	return append(out, c.bytes...)
}

var errBatch = errors.New("the other node sends rows that are out of order")

// take fills a batch with encoded rows, none of which it trusts.
func (b *rowBatch) take(in []byte, kind tableKind, width int, q Query) error {
	little := binary.LittleEndian
	b.reset()
	bad := false
	next := func(items, size int) []byte {
		if bad = bad || items > len(in)/size; bad {
			return nil
		}
		out := in[:items*size]
		in = in[items*size:]
		return out
	}
	text := func(c *idColumn) {
		end := 0
		for in := next(b.n, 4); len(in) > 0; in = in[4:] {
			e := int(little.Uint32(in))
			bad = bad || e < end
			c.ends, end = append(c.ends, e), max(end, e)
		}
		c.bytes = append(c.bytes, next(end, 1)...)
	}
	head := next(1, 4)
	if bad {
		return errBatch
	}
	b.n = int(little.Uint32(head))
	for i := range kind.ids() {
		c := &b.ids[i]
		way := next(1, 1)
		if bad || (way[0] == wireText) != q.Text {
			return errBatch
		}
		n := b.n
		if q.IDsOnly && !q.Text {
			count := next(1, 4)
			if bad || little.Uint32(count) > uint32(b.n) {
				return errBatch
			}
			n = int(little.Uint32(count))
		}
		switch way[0] {
		case wireShort:
			for in := next(n, 4); len(in) > 0; in = in[4:] {
				c.ints = append(c.ints, int64(little.Uint32(in)))
			}
		case wireLong:
			for in := next(n, 8); len(in) > 0; in = in[8:] {
				c.ints = append(c.ints, int64(little.Uint64(in)))
			}
		case wireText:
			text(c)
			for i := 0; i < len(c.ends) && !bad; i++ {
				bad = !utf8.Valid(c.at(i))
			}
		default:
			return errBatch
		}
	}
	if kind != edgesTable {
		for in := next(b.n, 8); len(in) > 0; in = in[8:] {
			b.rows = append(b.rows, little.Uint64(in))
		}
	}
	if q.IDsOnly {
		width = 0
	}
	switch {
	case q.IDsOnly:
	case kind == labelsTable && q.Words:
		text(&b.words)
	case kind == labelsTable && !q.Targets:
		for in := next(b.n, 4); len(in) > 0; in = in[4:] {
			l := int32(little.Uint32(in))
			bad = bad || l < graph.NoLabel || l >= source.MaxClasses
			b.labels = append(b.labels, l)
		}
	case kind == splitsTable:
		b.marks = append(b.marks, next(b.n*width, 1)...)
		for _, m := range b.marks {
			bad = bad || m > graph.Test
		}
	case width > 0:
		for in := next(b.n*width, 4); len(in) > 0; in = in[4:] {
			f := math.Float32frombits(little.Uint32(in))
			bad = bad || math.IsNaN(float64(f)) && !q.Targets || math.IsInf(float64(f), 0)
			b.floats = append(b.floats, f)
		}
	}
	if bad || len(in) > 0 {
		return errBatch
	}
	return nil
}

// A farTable is a table on another machine.
type farTable struct {
	far     Far
	info    tableAbout
	q       Query
	targets bool // labels can be had as numbers
}

var _ table = (*farTable)(nil)

// farTables checks what the other machine says of its tables. asked are the columns of labels.
func (p Part) farTables(asked []string) (set tableSet, err error) {
	if p.Look.Format != "csv" && p.Look.Format != "parquet" {
		return set, errBatch
	}
	for _, l := range p.Look.Tables {
		most := [...]int{1, source.MaxDenseFeatures, graph.MaxTargets, maxSplits}
		least := [...]int{0, 0, 1, 1} // a table of nodes may have no features
		if l.Kind < 0 || l.Kind > int(splitsTable) || set[l.Kind] != nil || l.Width < least[l.Kind] || l.Width > most[l.Kind] {
			return tableSet{}, errBatch
		}
		if l.Kind == int(labelsTable) {
			if err := sameLabels(asked, l.Labels); err != nil {
				return tableSet{}, err
			}
		}
		if n := len(l.Labels); n > 0 && n != l.Width {
			return tableSet{}, errBatch
		}
		for i, note := range l.Notes {
			l.Notes[i] = source.Printable(note)
		}
		set[l.Kind] = &farTable{
			far: p.Far, targets: p.Look.Targets,
			info: tableAbout{name: source.Printable(l.Name), unit: source.Printable(l.Unit), width: l.Width, weighs: l.Kind == int(edgesTable) && l.Width > 0, text: l.Text, columns: l.Columns, labels: l.Labels, notes: l.Notes},
			q:    Query{Path: p.Path, Format: p.Look.Format, Kind: l.Kind, LabelColumns: asked},
		}
	}
	if set[edgesTable] == nil {
		return tableSet{}, errBatch
	}
	return set, nil
}

func (t *farTable) about() tableAbout { return t.info }
func (t *farTable) close() error      { return nil }

func (t *farTable) scan(ctx context.Context, how scanning, yield func(*rowBatch) error) error {
	if how.targets && !t.targets {
		return fmt.Errorf("the node with %s sends classes only: run the same version on all nodes", t.info.name)
	}
	q := t.q
	q.Text, q.IDsOnly, q.Words, q.Targets, q.Fractions = how.text, how.idsOnly, how.words, how.targets, how.fractions
	var b rowBatch
	rows := uint64(0)
	unit := [...]string{"edges", "vertices", "vertices", "vertices"}[q.Kind]
	progress := source.NewProgress(how.report, "reading "+t.info.name, 0, unit)
	return t.far.Scan(ctx, q, func(in []byte) error {
		if err := b.take(in, tableKind(q.Kind), t.info.width, q); err != nil {
			return err
		}
		rows += uint64(b.n)
		progress.At(rows)
		return yield(&b)
	})
}
