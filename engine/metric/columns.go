package metric

import (
	"encoding/binary"
	"fmt"
)

// Columns counts what a yes or no in each of several columns was predicted as. Its numbers are
// whole, so those of several nodes add up to the same.
type Columns struct {
	rows    int
	columns []column
}

// column counts the cells of one column.
type column struct{ right, positive, predicted, known int } // right: of those predicted yes

// NewColumns returns one for so many columns.
func NewColumns(columns int) *Columns { return &Columns{columns: make([]column, columns)} }

// Reset discards all rows.
func (c *Columns) Reset() {
	c.rows = 0
	clear(c.columns)
}

// Add adds the logits of a row: yes is predicted where one is above 0, which is a probability
// of a half. side says of a column what is known of it.
func (c *Columns) Add(logits []float32, side func(column int) int) {
	c.rows++
	for i, z := range logits {
		is := side(i)
		if is < 0 {
			continue
		}
		of := &c.columns[i]
		of.known++
		of.positive += is
		if z > 0 {
			of.predicted++
			of.right += is
		}
	}
}

// Count returns how many rows were added.
func (c *Columns) Count() int { return c.rows }

// MicroF1 returns the F1 of all cells together. ok: some are yes, or predicted so.
func (c *Columns) MicroF1() (f1 float64, ok bool) {
	right, both := 0, 0
	for _, of := range c.columns {
		right, both = right+of.right, both+of.positive+of.predicted
	}
	if both == 0 {
		return 0, false
	}
	return 2 * float64(right) / float64(both), true
}

// MacroF1 returns the mean over the columns in which some cells are yes, or predicted so.
func (c *Columns) MacroF1() (f1 float64, ok bool) {
	n := 0
	for _, of := range c.columns {
		if both := of.positive + of.predicted; both > 0 {
			f1 += 2 * float64(of.right) / float64(both)
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return f1 / float64(n), true
}

// Exported returns the number of bytes that Export appends.
func (c *Columns) Exported() int { return 8 + 4*8*len(c.columns) }

// Export appends the counts, for others to Merge.
func (c *Columns) Export(to []byte) []byte {
	to = binary.LittleEndian.AppendUint64(to, uint64(c.rows))
	for _, of := range c.columns {
		for _, n := range [...]int{of.right, of.positive, of.predicted, of.known} {
			to = binary.LittleEndian.AppendUint64(to, uint64(n))
		}
	}
	return to
}

// Merge adds exported counts of at most most rows. If they can't be, it returns an error and
// adds nothing.
func (c *Columns) Merge(from []byte, most int) error {
	if len(from) != c.Exported() {
		return fmt.Errorf("%d bytes of counts for %d columns, which take %d", len(from), len(c.columns), c.Exported())
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(from[8*i:]) }
	rows := at(0)
	if rows > uint64(most) {
		return fmt.Errorf("%d rows of %d vertices", rows, most)
	}
	for i := range c.columns {
		right, positive, predicted, known := at(4*i+1), at(4*i+2), at(4*i+3), at(4*i+4)
		if known > rows || positive > known || predicted > known || right > positive || right > predicted || positive-right > known-predicted {
			return fmt.Errorf("column %d was rightly predicted %d times, of %d cells and %d predictions, of %d in %d rows", i, right, positive, predicted, known, rows)
		}
	}
	c.rows += int(rows)
	for i := range c.columns {
		of := &c.columns[i]
		of.right, of.positive, of.predicted, of.known = of.right+int(at(4*i+1)), of.positive+int(at(4*i+2)), of.predicted+int(at(4*i+3)), of.known+int(at(4*i+4))
	}
	return nil
}
