// Package columnar reads files that are stored by columns: Parquet, also as a folder
// of part files, and Arrow (Feather). It knows values, not what they mean in a graph.
//
// Nothing that a file says of itself is trusted: what it claims is compared with its
// size and with what memory may be taken before the library that decodes it acts.
package columnar

import (
	"math"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// A Kind is the type that a column's values are read as.
type Kind int

// The kinds of values. Others can't be read.
const (
	Others Kind = iota
	Ints
	Floats
	Text
)

// An About describes a column of a file of columns.
type About struct {
	Name     string
	Kind     Kind
	List     bool
	Unsigned bool // an int below 0 stands for one beyond the largest int64
}

// A File is a file stored by columns: Parquet or Arrow.
type File interface {
	Columns() []About
	Rows() uint64 // 0: not known
	// Open reads the columns at these places from the first row on.
	Open(wanted []int) (Reader, error)
	Close() error
}

// A Reader goes through the rows of some columns.
type Reader interface {
	// Next returns up to most rows of all columns, valid until the next call, and
	// io.EOF at the end.
	Next(most int) (rows int, columns []*Values, err error)
	Close()
}

// Values holds some rows of a column, in the slice of its kind. A list column
// has a length for each row, and the values of all rows one after another.
type Values struct {
	Kind    Kind
	Ints    []int64
	Floats  []float64
	Text    Texts
	Nulls   []int // rows without a value, ascending; a zero stands there
	Lengths []int
}

func (c *Values) Len() int {
	switch c.Kind {
	case Ints:
		return len(c.Ints)
	case Floats:
		return len(c.Floats)
	}
	return len(c.Text.Ends)
}

func (c *Values) reset() {
	c.Ints, c.Floats, c.Nulls, c.Lengths = c.Ints[:0], c.Floats[:0], c.Nulls[:0], c.Lengths[:0]
	c.Text.reset()
}

func (c *Values) addNull() {
	c.Nulls = append(c.Nulls, c.Len())
	switch c.Kind {
	case Ints:
		c.Ints = append(c.Ints, 0)
	case Floats:
		c.Floats = append(c.Floats, 0)
	default:
		c.Text.Add(nil)
	}
}

// addNullIn records that a row's list has a null.
func (c *Values) addNullIn(row int) {
	if n := len(c.Nulls); n == 0 || c.Nulls[n-1] != row {
		c.Nulls = append(c.Nulls, row)
	}
}

// Float returns a value as a finite number of 32 bits.
func (c *Values) Float(i int, unsigned bool) (float32, error) {
	if c.Kind == Ints {
		if unsigned {
			return float32(uint64(c.Ints[i])), nil
		}
		return float32(c.Ints[i]), nil
	}
	v := c.Floats[i]
	f := float32(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0, source.ErrNotFinite
	case math.IsInf(float64(f), 0):
		return 0, source.ErrOutOfRange
	}
	return f, nil
}

// Show returns a value as text.
func (c *Values) Show(i int) []byte {
	switch c.Kind {
	case Ints:
		return strconv.AppendInt(nil, c.Ints[i], 10)
	case Text:
		return c.Text.At(i)
	}
	return strconv.AppendFloat(nil, c.Floats[i], 'g', -1, 64)
}

// A Refusal is an error whose sentence already says what to do.
type Refusal struct{ error }

func (r Refusal) Unwrap() error { return r.error }

// Texts holds text in one slice: the i-th ends before Ends[i].
type Texts struct {
	Ends  []int
	Bytes []byte
}

func (t *Texts) reset() { t.Ends, t.Bytes = t.Ends[:0], t.Bytes[:0] }

// At returns the i-th text.
func (t *Texts) At(i int) []byte {
	from := 0
	if i > 0 {
		from = t.Ends[i-1]
	}
	return t.Bytes[from:t.Ends[i]]
}

// Add appends a text.
func (t *Texts) Add(text []byte) {
	t.Bytes = append(t.Bytes, text...)
	t.Ends = append(t.Ends, len(t.Bytes))
}
