package tabular

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// A valueKind is the type that a column's values are read as.
type valueKind int

const (
	otherValues valueKind = iota
	intValues
	floatValues
	textValues
)

// A columnAbout describes a column of a file of columns.
type columnAbout struct {
	name     string
	kind     valueKind
	list     bool
	unsigned bool // an int below 0 stands for one beyond the largest int64
}

// columnFile is a file stored by columns: Parquet or Arrow.
type columnFile interface {
	columns() []columnAbout
	rows() uint64 // 0: not known
	// open reads the columns at these places from the first row on.
	open(wanted []int) (columnReader, error)
	close() error
}

// A columnReader goes through the rows of some columns.
type columnReader interface {
	// next returns up to most rows of all columns, valid until the next call, and
	// io.EOF at the end.
	next(most int) (rows int, columns []*columnValues, err error)
	close()
}

// columnValues holds some rows of a column, in the slice of its kind. A list column
// has a length for each row, and the values of all rows one after another.
type columnValues struct {
	kind    valueKind
	ints    []int64
	floats  []float64
	text    idColumn
	nulls   []int // rows without a value, ascending; a zero stands there
	lengths []int
}

func (c *columnValues) len() int {
	switch c.kind {
	case intValues:
		return len(c.ints)
	case floatValues:
		return len(c.floats)
	}
	return len(c.text.ends)
}

func (c *columnValues) reset() {
	c.ints, c.floats, c.nulls, c.lengths = c.ints[:0], c.floats[:0], c.nulls[:0], c.lengths[:0]
	c.text.reset()
}

func (c *columnValues) addNull() {
	c.nulls = append(c.nulls, c.len())
	switch c.kind {
	case intValues:
		c.ints = append(c.ints, 0)
	case floatValues:
		c.floats = append(c.floats, 0)
	default:
		c.text.addText(nil)
	}
}

// addNullIn records that a row's list has a null.
func (c *columnValues) addNullIn(row int) {
	if n := len(c.nulls); n == 0 || c.nulls[n-1] != row {
		c.nulls = append(c.nulls, row)
	}
}

// float returns a value as a finite number of 32 bits.
func (c *columnValues) float(i int, unsigned bool) (float32, error) {
	if c.kind == intValues {
		if unsigned {
			return float32(uint64(c.ints[i])), nil
		}
		return float32(c.ints[i]), nil
	}
	v := c.floats[i]
	f := float32(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0, source.ErrNotFinite
	case math.IsInf(float64(f), 0):
		return 0, source.ErrOutOfRange
	}
	return f, nil
}

// show formats a number for a sentence.
func (c *columnValues) show(i int) []byte {
	if c.kind == intValues {
		return strconv.AppendInt(nil, c.ints[i], 10)
	}
	return strconv.AppendFloat(nil, c.floats[i], 'g', -1, 64)
}

// A columnTable is a table in a file of columns.
type columnTable struct {
	file   columnFile
	kind   tableKind
	info   tableAbout
	wanted []int // ids first
	list   bool  // features are lists
	cols   []columnAbout
}

var _ table = (*columnTable)(nil)

// newColumnTable finds the columns of a table; it closes the file if it fails.
func newColumnTable(name string, kind tableKind, f columnFile) (*columnTable, error) {
	t := &columnTable{file: f, kind: kind, info: tableAbout{name: name, unit: "row"}}
	if err := t.find(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return t, nil
}

func (t *columnTable) find() error {
	all := t.file.columns()
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.name
	}
	if len(names) < 2 {
		return fmt.Errorf("%s has %d columns: write %s", t.info.name, len(names), t.kind.wants())
	}
	p, err := placeColumns(t.info.name, t.kind, names)
	if err != nil {
		return err
	}
	if t.kind == featuresTable {
		t.pickFeatures(&p, all)
	}
	t.wanted = append(append(t.wanted, p.id[:t.kind.ids()]...), p.value...)
	for i, column := range t.wanted {
		c := all[column]
		t.cols = append(t.cols, c)
		if err := t.suits(c, i < t.kind.ids()); err != nil {
			return err
		}
	}
	t.info.width = len(p.value)
	if len(p.ignored) > 0 {
		t.info.notes = append(t.info.notes, fmt.Sprintf("%s: left out: %s.", t.info.name, source.Listed(p.ignored)))
	}
	return t.look()
}

// pandasIndex is the column of row numbers that pandas adds.
const pandasIndex = "__index_level_0__"

// pickFeatures chooses a column of lists, if it is called features or is the only
// column, else all columns of numbers.
func (t *columnTable) pickFeatures(p *placed, all []columnAbout) {
	one := -1
	var scalar []int
	for _, i := range p.value {
		switch {
		case all[i].name == pandasIndex:
			p.ignored = append(p.ignored, pandasIndex)
			continue
		case all[i].list && all[i].name == "features":
			one = i
		}
		scalar = append(scalar, i)
	}
	if one < 0 && len(scalar) == 1 && all[scalar[0]].list {
		one = scalar[0]
	}
	p.value = scalar
	if one >= 0 {
		t.list = true
		p.value = []int{one}
		for _, i := range scalar {
			if i != one {
				p.ignored = append(p.ignored, all[i].name)
			}
		}
	}
}

// suits returns an error if a column has the wrong type.
func (t *columnTable) suits(c columnAbout, id bool) error {
	wrong := func(remedy string) error {
		return fmt.Errorf("%s: the column %s has a type that can't be taken: %s", t.info.name, c.name, remedy)
	}
	number := c.kind == intValues || c.kind == floatValues
	switch {
	case id && (c.list || c.kind != intValues && c.kind != textValues):
		return wrong("ids are integers or strings")
	case id:
	case t.kind == featuresTable && (c.list != t.list || !number):
		return wrong("features are numbers, in a column each or as one column of lists")
	case t.kind == edgesTable && (c.list || !number):
		return wrong("weights are numbers")
	case t.kind == labelsTable && (c.list || !number):
		return wrong("labels are integers")
	case t.kind == splitsTable && (c.list || c.kind != textValues):
		return wrong("splits are the words train, val and test")
	}
	return nil
}

// look reads the first rows, to learn how wide lists are and whether ids are text.
func (t *columnTable) look() error {
	if t.list {
		_, columns, done, err := t.head(t.wanted, 1)
		if err != nil {
			return err
		}
		t.info.width = columns[1].lengths[0]
		done()
		if t.info.width == 0 {
			return fmt.Errorf("%s: the list of features is empty: give each id as many features", t.info.at(1))
		}
	}
	rows, columns, done, err := t.head(t.wanted[:t.kind.ids()], headRows)
	if err != nil {
		return err
	}
	defer done()
	for i, c := range columns[:t.kind.ids()] {
		for row := range rows {
			if c.kind == textValues {
				_, ok := source.ParseID(c.text.at(row))
				t.info.text = t.info.text || !ok && len(c.text.at(row)) > 0
			} else {
				t.info.text = t.info.text || t.cols[i].unsigned && c.ints[row] < 0
			}
		}
	}
	return nil
}

// head reads the first rows of some columns. They are valid until done is called.
func (t *columnTable) head(wanted []int, most int) (rows int, columns []*columnValues, done func(), err error) {
	r, err := t.file.open(wanted)
	if err != nil {
		return 0, nil, nil, t.broken(err)
	}
	rows, columns, err = r.next(most)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s holds no rows: write %s", t.info.name, t.kind.wants())
	} else if err != nil {
		err = t.broken(err)
	}
	if err != nil {
		r.close()
		return 0, nil, nil, err
	}
	return rows, columns, r.close, nil
}

// A refusal is an error whose sentence already says what to do.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func (t *columnTable) broken(err error) error {
	if _, refused := errors.AsType[refusal](err); refused {
		return fmt.Errorf("%s, %w", t.info.name, err)
	}
	return fmt.Errorf("%s can't be read (%w): write it again", t.info.name, err)
}

func (t *columnTable) about() tableAbout { return t.info }
func (t *columnTable) close() error      { return t.file.close() }

func (t *columnTable) scan(ctx context.Context, how scanning, yield func(*rowBatch) error) error {
	wanted := t.wanted
	if how.idsOnly {
		wanted = wanted[:t.kind.ids()]
	}
	r, err := t.file.open(wanted)
	if err != nil {
		return t.broken(err)
	}
	defer r.close()
	var batch rowBatch
	most := max(1, min(1<<15, 1<<20/max(1, t.info.width)))
	done := uint64(0)
	progress := source.NewProgress(how.report, "reading "+t.info.name, t.file.rows(), [...]string{"edges", "vertices", "vertices", "vertices"}[t.kind])
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		rows, columns, err := r.next(most)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return t.broken(err)
		}
		batch.reset()
		batch.n = rows
		if err := t.fill(&batch, columns, done, how); err != nil {
			return err
		}
		if err := yield(&batch); err != nil {
			return err
		}
		done += uint64(rows)
		progress.At(done)
	}
}
