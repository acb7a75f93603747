package read

import (
	"math"
	"strconv"
)

// A valueKind is what a column's values can be taken as.
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

// columnFile is a file that is stored by columns: Parquet or Arrow.
type columnFile interface {
	columns() []columnAbout
	rows() uint64 // 0: not known
	// open reads the columns with these places from the first row on.
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

// columnValues is some rows of a column; the slice of its kind is filled. Rows of a
// list column are lengths, and the values of all of them lie one after another.
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

// addNullIn says that an element of a row's list is null.
func (c *columnValues) addNullIn(row int) {
	if n := len(c.nulls); n == 0 || c.nulls[n-1] != row {
		c.nulls = append(c.nulls, row)
	}
}

// float is a value as a finite number of 32 bits.
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
		return 0, errNotFinite
	case math.IsInf(float64(f), 0):
		return 0, errOutOfRange
	}
	return f, nil
}

// show is a number for a sentence.
func (c *columnValues) show(i int) []byte {
	if c.kind == intValues {
		return strconv.AppendInt(nil, c.ints[i], 10)
	}
	return strconv.AppendFloat(nil, c.floats[i], 'g', -1, 64)
}
