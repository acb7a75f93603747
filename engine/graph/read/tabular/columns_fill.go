package tabular

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

func (t *columnTable) wrong(row uint64, format string, args ...any) error {
	return fmt.Errorf("%s: %w", t.info.at(row+1), fmt.Errorf(format, args...))
}

// fill turns columns into rows. first is the index of the first one in the file.
func (t *columnTable) fill(b *rowBatch, columns []*columnValues, first uint64, how scanning) error {
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
	if how.idsOnly {
		return nil
	}
	values, about := columns[t.kind.ids():], t.cols[t.kind.ids():]
	switch t.kind {
	case edgesTable, featuresTable:
		if t.list {
			return t.fillLists(b, values[0], about[0], first)
		}
		width := len(values)
		b.floats = append(b.floats[:0], make([]float32, b.n*width)...)
		for i, c := range values {
			if len(c.nulls) > 0 {
				return t.wrong(first+uint64(c.nulls[0]), "the %s is missing: write a number, 0 if there is nothing", t.what(about[i].name))
			}
			for row := range b.n {
				v, err := c.float(row, about[i].unsigned)
				if err != nil {
					return t.wrong(first+uint64(row), "%w", source.ExplainNumber(t.what(about[i].name), c.show(row), err))
				}
				b.floats[row*width+i] = v
			}
		}
	case labelsTable:
		return t.fillLabels(b, values[0], about[0], first)
	case splitsTable:
		for row := range b.n {
			for _, c := range values {
				m, err := source.ParseMark(c.text.at(row))
				if err != nil {
					return t.wrong(first+uint64(row), "%w", err)
				}
				b.marks = append(b.marks, m)
			}
		}
	}
	return nil
}

func (t *columnTable) what(column string) string {
	if t.kind == edgesTable {
		return "weight"
	}
	return "feature " + column
}

func (t *columnTable) fillIDs(out *idColumn, c *columnValues, about columnAbout, first uint64, text bool) error {
	if len(c.nulls) > 0 {
		return t.wrong(first+uint64(c.nulls[0]), "an id in column %s is missing: write %s", about.name, t.kind.wants())
	}
	if c.kind == intValues && !text && !about.unsigned {
		out.ints = append(out.ints, c.ints...)
		return nil
	}
	var digits []byte
	for row := range c.len() {
		if c.kind == intValues {
			v := c.ints[row]
			switch {
			case !text && v < 0:
				return errNotInteger
			case !text:
				out.ints = append(out.ints, v)
				continue
			case about.unsigned:
				digits = strconv.AppendUint(digits[:0], uint64(v), 10)
			default:
				digits = strconv.AppendInt(digits[:0], v, 10)
			}
			out.addText(digits)
			continue
		}
		id := c.text.at(row)
		switch v, ok := source.ParseID(id); {
		case len(id) == 0:
			return t.wrong(first+uint64(row), "an id in column %s is empty: write %s", about.name, t.kind.wants())
		case !text && !ok:
			return errNotInteger
		case !text:
			out.ints = append(out.ints, v)
		case len(id) > source.MaxLine:
			return t.wrong(first+uint64(row), "an id in column %s is longer than %d bytes: shorten it", about.name, source.MaxLine)
		case !utf8.Valid(id):
			return t.wrong(first+uint64(row), "the id %s is not UTF-8: write it as such", source.Shorten(id))
		default:
			out.addText(id)
		}
	}
	return nil
}

func (t *columnTable) fillLists(b *rowBatch, c *columnValues, about columnAbout, first uint64) error {
	if len(c.nulls) > 0 {
		return t.wrong(first+uint64(c.nulls[0]), "a feature is missing: write a number, 0 if there is nothing")
	}
	at := 0
	for row, n := range c.lengths {
		if n != t.info.width {
			return t.wrong(first+uint64(row), "there are %d features and the first row has %d: give each id as many", n, t.info.width)
		}
		for ; n > 0; n-- {
			v, err := c.float(at, about.unsigned)
			if err != nil {
				return t.wrong(first+uint64(row), "%w", source.ExplainNumber("feature", c.show(at), err))
			}
			b.floats = append(b.floats, v)
			at++
		}
	}
	return nil
}

func (t *columnTable) fillLabels(b *rowBatch, c *columnValues, about columnAbout, first uint64) error {
	nulls := c.nulls
	for row := range b.n {
		if len(nulls) > 0 && nulls[0] == row {
			nulls = nulls[1:]
			b.labels = append(b.labels, graph.NoLabel)
			continue
		}
		var label int32
		var err error
		switch {
		case c.kind == floatValues:
			label, err = source.FloatLabel(c.floats[row])
		case about.unsigned && c.ints[row] < 0:
			label, err = source.IntLabel(math.MaxInt64)
		default:
			label, err = source.IntLabel(c.ints[row])
		}
		if err != nil {
			return t.wrong(first+uint64(row), "%w", err)
		}
		b.labels = append(b.labels, label)
	}
	return nil
}
