package foreign

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// most is the maximum number of cached CSRs.
const most = 64

// kept is the copy of a CSR, as a device with its own memory would keep it.
type kept struct{ csr tensor.CSR }

// graph returns the CSR to compute with: the copy made when its stamp was new. It panics
// if the CSR has changed under its stamp, which a real device would not notice.
func (d *Device) graph(g *tensor.CSR) *tensor.CSR {
	if g == nil || g.Stamp == 0 {
		return g
	}
	if g.There != nil {
		return g.There.At.(*tensor.CSR)
	}
	if k := d.copies[g.Stamp]; k != nil {
		k.mustBe(g)
		return &k.csr
	}
	if len(d.order) == most {
		delete(d.copies, d.order[0])
		d.order = d.order[:copy(d.order, d.order[1:])]
	}
	k := &kept{csr: *g}
	c := &k.csr
	c.Indptr = slices.Clone(g.Indptr)
	c.Indices = slices.Clone(g.Indices)
	c.Values = slices.Clone(g.Values)
	if t := g.Transposed; t != nil {
		c.Transposed = &tensor.Transpose{Indptr: slices.Clone(t.Indptr), Rows: slices.Clone(t.Rows), Edges: slices.Clone(t.Edges)}
	}
	d.copies[g.Stamp], d.order = k, append(d.order, g.Stamp)
	return c
}

func (k *kept) mustBe(g *tensor.CSR) {
	c := &k.csr
	same := c.Rows == g.Rows && c.Cols == g.Cols && slices.Equal(c.Indptr, g.Indptr) && slices.Equal(c.Indices, g.Indices) &&
		slices.Equal(c.Values, g.Values) && (c.Values == nil) == (g.Values == nil) && (c.Transposed == nil) == (g.Transposed == nil)
	if t := g.Transposed; same && t != nil {
		same = slices.Equal(c.Transposed.Indptr, t.Indptr) && slices.Equal(c.Transposed.Rows, t.Rows) && slices.Equal(c.Transposed.Edges, t.Edges)
	}
	if !same {
		panic(fmt.Sprintf("foreign: a CSR of %d x %d has changed since it got its stamp", g.Rows, g.Cols))
	}
}
