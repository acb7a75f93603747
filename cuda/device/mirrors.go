//go:build cuda

package device

import (
	"math/bits"
	"slices"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// mostMirrors is the maximum number of copies. It suffices for a few mini-batches with
// both directions of some hops, or for a layer's graphs of a node's shards.
const mostMirrors = 64

// mirror is a copy of one direction of a CSR in the GPU's memory: its entries by rows, or
// its transpose.
type mirror struct {
	memory driver.Memory
	stamp  uint64 // of the CSR; 0: of none
	back   bool   // of the transpose
	turn   uint64 // the operation that last used it
}

// mirrors holds the copies. New stamps take the memory of the least recently used copies:
// the blocks of a sampler have a new stamp each step, and similar sizes.
type mirrors struct {
	kept  []mirror
	bytes int
	most  int // bytes
	turn  uint64
}

// size rounds up to steps of a quarter or less, so that similar sizes become equal.
func size(n int) int {
	step := max(alignment, 1<<max(0, bits.Len(uint(n))-3))
	return (n + step - 1) / step * step
}

// mirror returns the copy, or memory for one. In the latter case fresh is true and the
// caller fills it. After an error the length is 0.
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

// oldest returns the least recently used copy of this size, or of any size if bytes is 0,
// that this operation does not use. Copies without a stamp come first.
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

// before reports whether k is evicted before another copy.
func (k *mirror) before(other *mirror) bool {
	if (k.stamp == 0) != (other.stamp == 0) {
		return k.stamp == 0
	}
	return k.turn < other.turn
}

// another returns a new copy, and evicts others if there are too many. It returns nil
// after an error.
func (d *Device) another(bytes int) *mirror {
	m := &d.mirrors
	for len(m.kept) >= mostMirrors || m.bytes+bytes > m.most {
		old := m.oldest(0)
		if old == nil {
			break // this operation uses all of them
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

// drop frees all copies that this operation does not use, and reports whether there were
// any. The stream must be finished.
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

// entries holds the addresses of a CSR in the GPU's memory. indices and values are
// shifted so that offsets in Indptr apply, although the copies begin with the first
// entry.
type entries struct{ indptr, indices, values address }

// own returns the address of the CSR's own values, at its first entry, or 0 if it has
// none.
func (e entries) own(g *tensor.CSR) address {
	if e.values == 0 {
		return 0
	}
	return e.values.plus(4 * g.First())
}

// columns holds the addresses of a Transpose.
type columns struct{ indptr, rows, edges address }

// entries returns g by rows: as sampled on the GPU or as a copy, which is made if
// necessary.
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

// columns is like entries, by columns.
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

// weights returns the address of an aggregation's values, by Indptr. These are the given
// ones, which begin with the first entry, or the CSR's own; 0 means none.
func weights(g *tensor.CSR, values tensor.Matrix, e entries) address {
	if values.None() {
		return e.values
	}
	return addressOf(values).plus(-4 * g.First())
}
