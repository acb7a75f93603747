package metric

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Errors adds up how far predicted numbers are off, in each of several columns. Sums of numbers
// depend on their order, so those of each shard are kept apart: they are combined in the order
// of shards, whichever node added them.
type Errors struct {
	columns int
	shards  []errorsOf
}

// errorsOf is a shard's part.
type errorsOf struct {
	rows    int
	columns []spread // nil: none
}

// spread is what is known of a column's cells: how many there are, the mean of the targets and
// the sum of the squares of their distances from it, and the sums of errors and their squares.
type spread struct{ n, mean, squares, off, offSquares float64 }

// NewErrors returns one for so many columns.
func NewErrors(columns int) *Errors { return &Errors{columns: columns} }

// Reset has it begin anew, with so many shards.
func (e *Errors) Reset(shards int) {
	if len(e.shards) != shards {
		e.shards = make([]errorsOf, shards)
	}
	for i := range e.shards {
		e.shards[i].rows = 0
		clear(e.shards[i].columns)
	}
}

// of returns the columns of a shard.
func (e *Errors) of(shard int) []spread {
	s := &e.shards[shard]
	if s.columns == nil {
		s.columns = make([]spread, e.columns)
	}
	return s.columns
}

// Add adds a row of a shard. A target that is NaN is missing.
func (e *Errors) Add(shard int, predicted []float32, target func(column int) float64) {
	e.shards[shard].rows++
	columns := e.of(shard)
	for c := range columns {
		y := target(c)
		if math.IsNaN(y) {
			continue
		}
		of, off := &columns[c], float64(predicted[c])-y
		of.n++
		from := y - of.mean
		of.mean += from / of.n
		of.squares += from * (y - of.mean)
		of.off += math.Abs(off)
		of.offSquares += off * off
	}
}

// Count returns how many rows were added.
func (e *Errors) Count() (rows int) {
	for i := range e.shards {
		rows += e.shards[i].rows
	}
	return rows
}

// total combines the shards' parts of a column.
func (e *Errors) total(column int) (all spread) {
	for i := range e.shards {
		if e.shards[i].columns == nil {
			continue
		}
		of := e.shards[i].columns[column]
		if of.n == 0 {
			continue
		}
		n, from := all.n+of.n, of.mean-all.mean
		all.squares += of.squares + from*from*all.n*of.n/n
		all.mean += from * of.n / n
		all.n, all.off, all.offSquares = n, all.off+of.off, all.offSquares+of.offSquares
	}
	return all
}

// Mean returns the means, over all cells, of the absolute error and of its square. ok: there
// are cells.
func (e *Errors) Mean() (absolute, square float64, ok bool) {
	n := 0.0
	for c := range e.columns {
		all := e.total(c)
		n, absolute, square = n+all.n, absolute+all.off, square+all.offSquares
	}
	if n == 0 {
		return 0, 0, false
	}
	return absolute / n, square / n, true
}

// R2 returns the mean, over the columns whose targets are not all alike, of the share of their
// variance that is predicted. ok: there is such a column.
func (e *Errors) R2() (share float64, ok bool) {
	n := 0
	for c := range e.columns {
		if all := e.total(c); all.squares > 0 {
			share += 1 - all.offSquares/all.squares
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return share / float64(n), true
}

// numbers is how many numbers of a shard are exported.
func (e *Errors) numbers() int { return 1 + 5*e.columns }

// Exported returns the number of bytes that Export appends for so many shards.
func (e *Errors) Exported(shards int) int { return 8 * shards * e.numbers() }

// Export appends the parts of some shards, for others to Merge.
func (e *Errors) Export(to []byte, shards []int) []byte {
	for _, shard := range shards {
		to = binary.LittleEndian.AppendUint64(to, uint64(e.shards[shard].rows))
		for _, of := range e.of(shard) {
			for _, x := range [...]float64{of.n, of.mean, of.squares, of.off, of.offSquares} {
				to = binary.LittleEndian.AppendUint64(to, math.Float64bits(x))
			}
		}
	}
	return to
}

// Merge sets the parts of another's shards, with at most most rows in all. If they can't be, it
// returns an error and sets nothing. Numbers that are not finite can be: those are of a model
// that diverged.
func (e *Errors) Merge(from []byte, shards []int, most int) error {
	if len(from) != e.Exported(len(shards)) {
		return fmt.Errorf("%d bytes of errors of %d shards, which take %d", len(from), len(shards), e.Exported(len(shards)))
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(from[8*i:]) }
	left := uint64(most)
	for i, shard := range shards {
		first := i * e.numbers()
		rows := at(first)
		if rows > left {
			return fmt.Errorf("%d rows of shard %d, of %d vertices", rows, shard, most)
		}
		left -= rows
		for c := range e.columns {
			if n := math.Float64frombits(at(first + 1 + 5*c)); !(n >= 0 && n <= float64(rows)) || n != math.Trunc(n) {
				return fmt.Errorf("%g targets in column %d of %d rows", n, c, rows)
			}
		}
	}
	for i, shard := range shards {
		first := i * e.numbers()
		e.shards[shard].rows = int(at(first))
		for c := range e.of(shard) {
			number := func(k int) float64 { return math.Float64frombits(at(first + 1 + 5*c + k)) }
			e.shards[shard].columns[c] = spread{number(0), number(1), number(2), number(3), number(4)}
		}
	}
	return nil
}
