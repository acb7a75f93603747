package tabular

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/columnar"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

func (t *columnTable) wrong(row uint64, format string, args ...any) error {
	return fmt.Errorf("%s: %w", t.info.at(row+1), fmt.Errorf(format, args...))
}

// fill turns columns into rows. first is the index of the first one in the file.
func (t *columnTable) fill(b *rowBatch, columns []*columnar.Values, first uint64, how scanning) error {
	for i, c := range columns[:t.kind.ids()] {
		if err := t.fillIDs(&b.ids[i], c, t.cols[i], first, how.text); err != nil {
			return err
		}
	}
	if t.kind != edgesTable {
		for row := range b.n {
			b.rows = append(b.rows, first+uint64(row)+1)
		}
	}
	if how.categories {
		last := len(columns) - 1
		if err := t.fillCategories(b, columns[last], first); err != nil {
			return err
		}
		columns = columns[:last]
	}
	if how.idsOnly {
		return nil
	}
	values, about := columns[t.kind.ids():], t.cols[t.kind.ids():]
	switch t.kind {
	case edgesTable, featuresTable:
		if t.list {
			return t.fillLists(b, values[0], about[0], first, how.gaps)
		}
		width := len(values)
		b.floats = append(b.floats[:0], make([]float32, b.n*width)...)
		for i, c := range values {
			if len(c.Nulls) > 0 && !how.gaps {
				return t.wrong(first+uint64(c.Nulls[0]), "the %s is missing: write a number, 0 if there is nothing", t.what(about[i].Name, i))
			}
			nulls := c.Nulls
			for row := range b.n {
				v, err := c.Float(row, about[i].Unsigned)
				missing := len(nulls) > 0 && nulls[0] == row
				if missing {
					nulls = nulls[1:]
				}
				if how.gaps && (missing || c.Kind == columnar.Floats && math.IsNaN(c.Floats[row])) {
					v, err = float32(math.NaN()), nil
				}
				if err != nil {
					return t.wrong(first+uint64(row), "%w", source.ExplainNumber(t.what(about[i].Name, i), c.Show(row), err))
				}
				b.floats[row*width+i] = v
			}
		}
	case labelsTable:
		if how.targets {
			return t.fillTargets(b, values, first)
		}
		return t.fillLabels(b, values[0], about[0], first, how.words)
	case splitsTable:
		for row := range b.n {
			if t.masks != nil {
				m, err := maskedPart(t.masks, func(mask int) (bool, error) { return parseMask(values[mask].Show(row)) })
				if err != nil {
					return t.wrong(first+uint64(row), "%w", err)
				}
				b.marks = append(b.marks, m)
				continue
			}
			for _, c := range values {
				m, err := source.ParseMark(c.Text.At(row))
				if err != nil {
					return t.wrong(first+uint64(row), "%w", err)
				}
				b.marks = append(b.marks, m)
			}
		}
	}
	return nil
}

func (t *columnTable) what(column string, i int) string {
	if t.kind == edgesTable && t.info.weighs && i == 0 {
		return "weight"
	}
	return "feature " + column
}

func (t *columnTable) fillIDs(out *idColumn, c *columnar.Values, about columnar.About, first uint64, text bool) error {
	if len(c.Nulls) > 0 {
		return t.wrong(first+uint64(c.Nulls[0]), "an id in column %s is missing: write %s", about.Name, t.kind.wants())
	}
	if c.Kind == columnar.Ints && !text && !about.Unsigned {
		out.ints = append(out.ints, c.Ints...)
		return nil
	}
	var digits []byte
	for row := range c.Len() {
		if c.Kind == columnar.Ints {
			v := c.Ints[row]
			switch {
			case !text && v < 0:
				return errNotInteger
			case !text:
				out.ints = append(out.ints, v)
				continue
			case about.Unsigned:
				digits = strconv.AppendUint(digits[:0], uint64(v), 10)
			default:
				digits = strconv.AppendInt(digits[:0], v, 10)
			}
			out.addText(digits)
			continue
		}
		id := c.Text.At(row)
		switch v, ok := source.ParseID(id); {
		case len(id) == 0:
			return t.wrong(first+uint64(row), "an id in column %s is empty: write %s", about.Name, t.kind.wants())
		case !text && !ok:
			return errNotInteger
		case !text:
			out.ints = append(out.ints, v)
		case len(id) > source.MaxLine:
			return t.wrong(first+uint64(row), "an id in column %s is longer than %d bytes: shorten it", about.Name, source.MaxLine)
		case !utf8.Valid(id):
			return t.wrong(first+uint64(row), "the id %s is not UTF-8: write it as such", source.Shorten(id))
		default:
			out.addText(id)
		}
	}
	return nil
}

func (t *columnTable) fillLists(b *rowBatch, c *columnar.Values, about columnar.About, first uint64, free bool) error {
	if len(c.Nulls) > 0 {
		return t.wrong(first+uint64(c.Nulls[0]), "a feature is missing: write a number, 0 if there is nothing")
	}
	at := 0
	for row, n := range c.Lengths {
		if free {
			b.lengths = append(b.lengths, n)
		} else if n != t.info.width {
			return t.wrong(first+uint64(row), "there are %d features and the first row has %d: give each id as many", n, t.info.width)
		}
		for ; n > 0; n-- {
			v, err := c.Float(at, about.Unsigned)
			if err != nil {
				return t.wrong(first+uint64(row), "%w", source.ExplainNumber("feature", c.Show(at), err))
			}
			b.floats = append(b.floats, v)
			at++
		}
	}
	return nil
}

// fillTargets takes labels as numbers.
func (t *columnTable) fillTargets(b *rowBatch, columns []*columnar.Values, first uint64) error {
	b.floats = append(b.floats[:0], make([]float32, b.n*len(columns))...)
	for i, c := range columns {
		nulls, unsigned := c.Nulls, t.cols[t.kind.ids()+i].Unsigned
		for row := range b.n {
			x, err := float32(math.NaN()), error(nil)
			switch {
			case len(nulls) > 0 && nulls[0] == row:
				nulls = nulls[1:]
			case c.Kind == columnar.Text:
				x, err = source.ParseTarget(c.Text.At(row))
			case c.Kind == columnar.Ints || c.Floats[row] == c.Floats[row]:
				x, err = c.Float(row, unsigned)
			}
			if err != nil {
				return t.wrong(first+uint64(row), "%w", source.ExplainTarget(labelName(t.info.labels, i), c.Show(row), err))
			}
			b.floats[row*len(columns)+i] = x
		}
	}
	return nil
}

// fillLabels takes labels as integers, or, with words, as the names of classes.
func (t *columnTable) fillLabels(b *rowBatch, c *columnar.Values, about columnar.About, first uint64, words bool) error {
	nulls := c.Nulls
	for row := range b.n {
		if len(nulls) > 0 && nulls[0] == row {
			nulls = nulls[1:]
			if words {
				b.words.addText(nil)
			} else {
				b.labels = append(b.labels, graph.NoLabel)
			}
			continue
		}
		if words {
			b.words.addText(c.Show(row))
			continue
		}
		var label int32
		var err error
		switch {
		case c.Kind == columnar.Text:
			label, err = source.ParseLabel(c.Text.At(row))
		case c.Kind == columnar.Floats:
			label, err = source.FloatLabel(c.Floats[row])
		case about.Unsigned && c.Ints[row] < 0:
			label, err = source.IntLabel(math.MaxInt64)
		default:
			label, err = source.IntLabel(c.Ints[row])
		}
		if errors.Is(err, source.ErrWord) {
			return errNotInteger
		} else if err != nil {
			return t.wrong(first+uint64(row), "%w", err)
		}
		b.labels = append(b.labels, label)
	}
	return nil
}
