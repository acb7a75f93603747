package p3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// Columns are some columns of the features of all vertices, normalised by row. They are
// safe for concurrent reading.
type Columns struct {
	span
	layout peer.Layout
	sparse bool
	memory uint64        // bound of bytes
	bytes  atomic.Uint64 // memory in use

	form  dense
	rows  []tensor.Part // one part: dense rows
	rates []tensor.Part // scales of rows, if they are scaled

	shards []shard // sparse rows
	valued bool    // some of them have values
}

// A shard is the sparse rows of a shard's vertices, with all columns of this node.
type shard struct {
	indptr  []int64
	indices []int32
	values  []float32 // nil: all 1
}

// newColumns returns columns, of which dense ones take no memory yet.
func (s *Source) newColumns(own span, l peer.Layout, memory uint64) (*Columns, error) {
	c := &Columns{span: own, layout: l, sparse: s.form.Sparse(), memory: memory}
	n := int(s.store.Vertices())
	if l.Vertices() != s.store.Vertices() || len(l.Owners) != len(l.Firsts)-1 {
		return nil, fmt.Errorf("the layout is of %d vertices, the features are of %d", l.Vertices(), n)
	}
	if c.sparse {
		c.shards = make([]shard, len(l.Owners))
		for i := range c.shards {
			c.shards[i].indptr = append(make([]int64, 0, 1+l.Firsts[i+1]-l.Firsts[i]), 0)
		}
		c.bytes.Add(8 * uint64(n))
		return c, c.within()
	}
	c.form = denseForm(s.form)
	c.bytes.Add(uint64(n) * uint64(c.form.bytes(own.cols)))
	return c, c.within()
}

// open takes the memory of dense rows.
func (c *Columns) open() {
	n := int(c.layout.Vertices())
	if c.form.kind == tensor.BF16 {
		c.rows = []tensor.Part{{X: tensor.OverBF16(n, c.cols, make([]uint16, n*c.cols))}}
	} else {
		c.rows = []tensor.Part{{X: tensor.OverF32(n, c.cols, make([]float32, n*c.cols))}}
	}
	if c.form.scaled {
		c.rates = []tensor.Part{{X: tensor.OverF32(n, 1, make([]float32, n))}}
	}
}

// Bytes returns the memory that they take.
func (c *Columns) Bytes() uint64 { return c.bytes.Load() }

// within returns an error unless they fit.
func (c *Columns) within() error { return fits(c.bytes.Load(), c.memory) }

// atOnce returns how many rows to request at once.
func (c *Columns) atOnce(rows uint32, most int) uint32 {
	if c.sparse {
		return rows
	}
	return min(rows, uint32(min(most/c.form.bytes(c.cols), math.MaxInt32)))
}

// take stores an answer, and returns its number of rows.
func (c *Columns) take(at int, q question, answer []byte) (rows int, err error) {
	if c.sparse {
		return c.takeSparse(&c.shards[at], q, answer)
	}
	if want := int(q.rows) * c.form.bytes(c.cols); len(answer) != want {
		return 0, fmt.Errorf("it has %d bytes where %d rows take %d", len(answer), q.rows, want)
	}
	x := c.rows[0].X.RowRange(int(q.first), int(q.rows))
	if x.Type == tensor.BF16 {
		answer = answer[copy(plain.Bytes(x.BF16()), answer):]
	} else {
		answer = answer[copy(plain.Bytes(x.F32()), answer):]
	}
	if c.form.scaled {
		copy(plain.Bytes(c.rates[0].X.RowRange(int(q.first), int(q.rows)).F32()), answer)
	}
	return int(q.rows), nil
}

// Errors of received columns.
var (
	errCut     = errors.New("it ends within a row")
	errTooMany = errors.New("it has more rows than were asked for")
	errNone    = errors.New("it has no row")
	errMixed   = errors.New("it has values, or has none, where another had not")
)

func (c *Columns) takeSparse(s *shard, q question, answer []byte) (rows int, err error) {
	if len(answer) < 4 || binary.LittleEndian.Uint32(answer) > 1 {
		return 0, errCut
	}
	valued := answer[0] == 1
	if len(s.indptr) > 1 && valued != (s.values != nil) {
		return 0, errMixed
	}
	before := uint64(cap(s.indices)) + uint64(cap(s.values))
	for answer = answer[4:]; len(answer) > 0; rows++ {
		if rows == int(q.rows) {
			return 0, errTooMany
		}
		if answer, err = c.takeRow(s, answer, valued); err != nil {
			return 0, err
		}
	}
	if rows == 0 {
		return 0, errNone
	}
	c.bytes.Add(4 * (uint64(cap(s.indices)) + uint64(cap(s.values)) - before))
	return rows, nil
}

// takeRow stores one row and returns what follows it.
func (c *Columns) takeRow(s *shard, b []byte, valued bool) ([]byte, error) {
	if len(b) < 4 {
		return nil, errCut
	}
	n, size := uint64(binary.LittleEndian.Uint32(b)), uint64(columnBytes(c.cols))
	b = b[4:]
	entry := size
	if valued {
		entry += 4
	}
	if n > uint64(c.cols) {
		return nil, fmt.Errorf("it has a row of %d entries in %d columns", n, c.cols)
	}
	if n*entry > uint64(len(b)) {
		return nil, errCut
	}
	last := int64(-1)
	for i := range n {
		column := int64(binary.LittleEndian.Uint16(b[size*i:]))
		if size == 4 {
			column = int64(binary.LittleEndian.Uint32(b[4*i:]))
		}
		if column <= last || column >= int64(c.cols) {
			return nil, fmt.Errorf("it has column %d in a row, which does not ascend below %d", column, c.cols)
		}
		last = column
		s.indices = append(s.indices, int32(c.first)+int32(column))
	}
	if valued {
		for i := range n {
			s.values = append(s.values, math.Float32frombits(binary.LittleEndian.Uint32(b[n*size+4*i:])))
		}
		if s.values == nil {
			s.values = []float32{} // not nil, which means all 1
		}
	}
	s.indptr = append(s.indptr, int64(len(s.indices)))
	return b[n*entry:], nil
}
