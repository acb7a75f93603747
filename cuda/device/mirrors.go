//go:build cuda

package device

import (
	"math/bits"
	"slices"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// mostMirrors is how many copies are kept at most: a few batches of both ways of some
// hops, or a layer's graphs of the shards of a node.
const mostMirrors = 64

// A mirror is a copy in the GPU's memory of what a CSR has for one way: its entries by
// rows, or its transpose.
type mirror struct {
	memory driver.Memory
	stamp  uint64 // of the CSR; 0: of none
	back   bool   // the transpose
	turn   uint64 // the operation that used it last
}

// mirrors are the copies that there are. Those of new stamps take the memory of those
// that were used longest ago: blocks of a sampler have a new stamp each step, and sizes
// that are much alike.
type mirrors struct {
	kept  []mirror
	bytes int
	most  int // bytes
	turn  uint64
}

// size is how much memory is taken for so many bytes: steps of a quarter or less, so
// that what is much alike has the same size.
func size(n int) int {
	step := max(alignment, 1<<max(0, bits.Len(uint(n))-3))
	return (n + step - 1) / step * step
}

// mirror finds the copy, or memory for one: then it is fresh and has to be filled. Its
// length is 0 if there was an error.
func (d *Device) mirror(stamp uint64, back bool, bytes int) (memory driver.Memory, fresh bool) {
	m := &d.mirrors
	if d.err != nil {
		return driver.Memory{}, false
	}
	if stamp != 0 {
		for i := range m.kept {
			if k := &m.kept[i]; k.stamp == stamp && k.back == back {
				k.turn = m.turn
				return k.memory, false
			}
		}
	}
	want := size(max(1, bytes))
	k := m.oldest(want)
	full := len(m.kept) >= mostMirrors || m.bytes+want > m.most
	if k == nil || k.stamp != 0 && !full {
		if k = d.another(want); k == nil {
			return driver.Memory{}, false
		}
	}
	k.stamp, k.back, k.turn = stamp, back, m.turn
	return k.memory, true
}

// oldest is the copy of this size, or of any with 0, that was used longest ago, and not
// by this operation. Copies of no stamp come first.
func (m *mirrors) oldest(bytes int) *mirror {
	var best *mirror
	for i := range m.kept {
		k := &m.kept[i]
		if k.turn == m.turn || bytes != 0 && k.memory.Len() != bytes {
			continue
		}
		if best == nil || k.before(best) {
			best = k
		}
	}
	return best
}

// before says whether k's memory is taken before that of another.
func (k *mirror) before(other *mirror) bool {
	if (k.stamp == 0) != (other.stamp == 0) {
		return k.stamp == 0
	}
	return k.turn < other.turn
}

// another is a new one, for which others go if there are too many. It is nil if there
// was an error.
func (d *Device) another(bytes int) *mirror {
	m := &d.mirrors
	for len(m.kept) >= mostMirrors || m.bytes+bytes > m.most {
		old := m.oldest(0)
		if old == nil {
			break // this operation needs all of them
		}
		if !d.finish() {
			return nil
		}
		m.remove(d, old)
	}
	memory, err := d.take(bytes)
	if !d.check(err) {
		return nil
	}
	m.kept, m.bytes = append(m.kept, mirror{memory: memory}), m.bytes+bytes
	return &m.kept[len(m.kept)-1]
}

func (m *mirrors) remove(d *Device, k *mirror) {
	d.check(d.on.Free(k.memory))
	m.bytes -= k.memory.Len()
	*k = m.kept[len(m.kept)-1]
	m.kept = m.kept[:len(m.kept)-1]
}

// drop gives back all that this operation does not use, and says whether that was
// anything. The stream is finished.
func (m *mirrors) drop(d *Device) bool {
	dropped := false
	for i := range slices.Backward(m.kept) {
		if m.kept[i].turn != m.turn {
			m.remove(d, &m.kept[i])
			dropped = true
		}
	}
	return dropped
}

// entries are a CSR's in the GPU's memory. indices and values are such that what
// Indptr says is where they stand, though the copies begin with the first entry.
type entries struct{ indptr, indices, values address }

// own is where the CSR's own values begin, its first entry's; 0 if it has none.
func (e entries) own(g *tensor.CSR) address {
	if e.values == 0 {
		return 0
	}
	return e.values.plus(4 * g.First())
}

// columns are a Transpose's.
type columns struct{ indptr, rows, edges address }

// entries is what g has by rows: where it was drawn, or a copy, which is made now if it
// is not there yet.
func (d *Device) entries(g *tensor.CSR) entries {
	if g.There != nil {
		return g.There.At.(*held).entries
	}
	first, n := g.First(), g.Entries()
	wide, narrow := aligned(8*(g.Rows+1)), aligned(4*n)
	bytes := wide + narrow
	if g.Values != nil {
		bytes += narrow
	}
	memory, fresh := d.mirror(g.Stamp, false, bytes)
	e := entries{indptr: address(memory.Address())}
	e.indices = e.indptr.plus(wide)
	if fresh {
		d.send(e.indptr, bytesOf(g.Indptr[:g.Rows+1]))
		d.send(e.indices, bytesOf(g.Indices[first:first+n]))
	}
	if g.Values != nil {
		e.values = e.indices.plus(narrow)
		if fresh {
			d.send(e.values, bytesOf(g.Values[first:first+n]))
		}
		e.values = e.values.plus(-4 * first)
	}
	e.indices = e.indices.plus(-4 * first)
	return e
}

// columns is as entries of what g has by columns.
func (d *Device) columns(g *tensor.CSR) columns {
	t, n := g.Transposed, g.Entries()
	must(t != nil, "the way back needs the transposed graph")
	if g.There != nil {
		return g.There.At.(*held).columns
	}
	wide, narrow := aligned(8*(g.Cols+1)), aligned(4*n)
	memory, fresh := d.mirror(g.Stamp, true, wide+2*narrow)
	c := columns{indptr: address(memory.Address())}
	c.rows = c.indptr.plus(wide)
	c.edges = c.rows.plus(narrow)
	if fresh {
		d.send(c.indptr, bytesOf(t.Indptr[:g.Cols+1]))
		d.send(c.rows, bytesOf(t.Rows[:n]))
		d.send(c.edges, bytesOf(t.Edges[:n]))
	}
	return c
}

// weights are the values of an aggregation by Indptr: those given, which begin with the
// first entry, or the CSR's own; 0 for none.
func weights(g *tensor.CSR, values tensor.Matrix, e entries) address {
	if values.None() {
		return e.values
	}
	return addressOf(values).plus(-4 * g.First())
}
