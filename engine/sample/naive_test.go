package sample

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// naive is the sampler written down in the simplest way: edges in maps, sums in
// float64.
type naive struct {
	n  int
	in map[uint32][]edge // ascending by source
	o  Options
}

func newNaive(n int, edges []edge, weighted bool, o Options) *naive {
	a := &naive{n, map[uint32][]edge{}, o}
	for _, e := range edges {
		if !weighted {
			e.weight = 1
		}
		a.in[e.to] = append(a.in[e.to], e)
	}
	for _, row := range a.in {
		slices.SortFunc(row, func(a, b edge) int { return cmp.Compare(a.from, b.from) })
	}
	return a
}

// adds says whether v gets a self-loop.
func (a *naive) adds(v uint32) bool {
	return a.o.Form.SelfLoops && !slices.ContainsFunc(a.in[v], func(e edge) bool { return e.from == v })
}

func (a *naive) degree(v uint32) float64 {
	d := 0.0
	for _, e := range a.in[v] {
		d += float64(e.weight)
	}
	if a.adds(v) {
		d++
	}
	return d
}

// An entry is one of a row, by the id of its source.
type entry struct {
	from  uint32
	value float64
}

// row is what is drawn for v; values only as far as the form has them.
func (a *naive) row(epoch, step, hop uint64, v uint32, fanout int) []entry {
	all := a.in[v]
	d := len(all)
	drawn := make([]int, 0, d)
	if fanout == 0 || d <= fanout {
		for i := range d {
			drawn = append(drawn, i)
		}
	} else {
		draws := keyed.New(a.o.Seed, keyed.Neighbor).With(epoch).With(step).With(hop).With(uint64(v)).Draws()
		for j := d - fanout; j < d; j++ {
			at := int(draws.Below(uint64(j + 1)))
			if slices.Contains(drawn, at) {
				at = j
			}
			drawn = append(drawn, at)
		}
	}
	var row []entry
	if a.adds(v) {
		row = append(row, entry{v, 1})
	}
	for _, at := range drawn {
		value := float64(all[at].weight)
		if a.o.Form.Weighting != Own {
			value *= float64(d) / float64(len(drawn))
		}
		row = append(row, entry{all[at].from, value})
	}
	for i := range row {
		switch a.o.Form.Weighting {
		case Ones:
			row[i].value = 1
		case Symmetric:
			product := a.degree(v) * a.degree(row[i].from)
			if product > 0 {
				row[i].value /= math.Sqrt(product)
			} else {
				row[i].value = 0
			}
		}
	}
	return row
}

// A layer is one block of the naive sampler.
type layer struct {
	vertices []uint32
	rows     [][]entry
}

func (a *naive) sample(epoch, step uint64, roots []uint32) []layer {
	return layersOf(a.o.Fanouts, roots, func(h int, v uint32, fanout int) []entry {
		return a.row(epoch, step, uint64(h), v, fanout)
	})
}

// layersOf are those of roots, of which row draws each row.
func layersOf(fanouts []int, roots []uint32, row func(h int, v uint32, fanout int) []entry) []layer {
	layers := make([]layer, len(fanouts))
	vertices := slices.Clone(roots)
	for h, fanout := range fanouts {
		l := &layers[len(layers)-1-h]
		for _, v := range vertices {
			l.rows = append(l.rows, row(h, v, fanout))
		}
		number := map[uint32]bool{}
		for _, v := range vertices {
			number[v] = true
		}
		for _, row := range l.rows {
			for _, e := range row {
				if !number[e.from] {
					number[e.from] = true
					vertices = append(vertices, e.from)
				}
			}
		}
		l.vertices = slices.Clone(vertices)
	}
	return layers
}

// same says what differs between a block and a layer.
func (l *layer) same(b *Block, valued bool) error {
	if !slices.Equal(b.Vertices, l.vertices) || b.Cols != len(l.vertices) {
		return fmt.Errorf("%d sources %v, and %v are expected", b.Cols, b.Vertices, l.vertices)
	}
	return l.sameRows(b, l.vertices, valued)
}

func (l *layer) sameRows(b *Block, vertices []uint32, valued bool) error {
	if b.Rows != len(l.rows) || len(b.Indptr) != b.Rows+1 || (b.Values != nil) != valued || b.Transposed != nil {
		return fmt.Errorf("%d rows, %d bounds, %d values", b.Rows, len(b.Indptr), len(b.Values))
	}
	for r, row := range l.rows {
		from, to := b.Indptr[r], b.Indptr[r+1]
		if int(to-from) != len(row) {
			return fmt.Errorf("row %d has %d entries, not %d", r, to-from, len(row))
		}
		for i, want := range row {
			if got := vertices[b.Indices[int(from)+i]]; got != want.from {
				return fmt.Errorf("entry %d of row %d comes from %d, not %d", i, r, got, want.from)
			}
			if !valued {
				continue
			}
			if got := float64(b.Values[int(from)+i]); math.Abs(got-want.value) > 1e-6*math.Abs(want.value) {
				return fmt.Errorf("entry %d of row %d has the value %v, not %v", i, r, got, want.value)
			}
		}
	}
	return nil
}
