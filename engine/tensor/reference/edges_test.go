package reference_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A target is the source that stands own rows further on: its vertex and that of the
// entry's source make the key, and the head is the column.
func TestAttentionDropsByBothEnds(t *testing.T) {
	b := lay(t)
	const own, heads, p = 2, 3, .5
	g := &tensor.CSR{Rows: 4, Cols: 6, Indptr: []int64{0, 1, 2, 3, 4}, Indices: []int32{5, 0, 2, 4}}
	d := dropout(p)
	y, stats := b.zeros(4, heads), b.zeros(4, 2*heads)
	var want []float64
	for target, source := range []int{5, 0, 2, 4} {
		key := d.Key.With(uint64(vertices[own+target])).With(uint64(vertices[source]))
		for h := range uint32(heads) {
			kept := 2.0
			if key.Column(h) < keyed.Threshold(p) {
				kept = 0
			}
			want = append(want, kept*float64(source+1))
		}
	}
	x := b.of(6, heads, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6)
	b.Attend(y, stats, g, x, b.random(6, heads), b.random(4, heads), .2, d, own)
	b.is("Attend's y", y, want...)
	b.AttendV2(y, stats, g, x, b.random(4, heads), b.random(1, heads), .2, d, own)
	b.is("AttendV2's y", y, want...)
}

// The gradients that are added to keep what they held.
func TestGradientsAddUp(t *testing.T) {
	b := lay(t)
	x, a, dy := b.of(2, 2, 1, 2, 3, 4), b.of(1, 2, 5, 6), b.of(2, 1, 1, -1)
	dx, da := b.of(2, 2, 10, 10, 10, 10), b.of(1, 2, 20, 20)
	b.HeadDotBack(dx, da, dy, x, a)
	b.is("dx", dx, 15, 16, 5, 4)
	b.is("da", da, 18, 18)
	// One entry has no choice: its score gets no gradient.
	g := &tensor.CSR{Rows: 1, Cols: 2, Indptr: []int64{0, 1}, Indices: []int32{1}}
	to, y, stats := b.random(1, 2), b.zeros(1, 2), b.zeros(1, 2)
	b.AttendV2(y, stats, g, x, to, a, .2, tensor.Dropout{}, 0)
	dto := b.random(1, 2)
	b.AttendV2Back(dx, dto, da, g, b.of(1, 2, 7, 8), stats, x, to, a, .2, tensor.Dropout{}, 0)
	b.is("dx", dx, 0, 0, 7, 8)
	b.is("dto", dto, 0, 0)
	b.is("da", da, 18, 18)
	sums := b.of(1, 2, 1, 1)
	b.ColumnSums(sums, x)
	b.is("sums", sums, 5, 7)
	which := b.arena.Alloc(tensor.I32, 1, 2)
	b.Write(which, []float64{1, -1})
	b.AggregateMaxBack(dx, g, b.of(1, 2, 3, 4), which, false)
	b.is("dx of the largest", dx, 0, 0, 3, 0)
	b.AggregateBack(dx, g, none, b.of(1, 2, 1, 1), tensor.Mean, true)
	b.is("dx of the mean and the largest", dx, 0, 0, 4, 1)
	dgamma, dbeta := b.of(1, 2, 1, 1), b.of(1, 2, 1, 1)
	b.LayerNormBack(b.zeros(2, 2), dgamma, dbeta, b.of(2, 2, 1, 2, 3, 4), x, b.of(2, 2, 1, 1, 1, 1), a)
	b.is("dgamma", dgamma, 1+0+6, 1+2+12)
	b.is("dbeta", dbeta, 5, 7)
}

func TestDropValues(t *testing.T) {
	b := lay(t)
	g, d := graph(true), dropout(.5)
	given := b.random(1, g.Entries())
	for name, from := range map[string]tensor.Matrix{"given": given, "its own": none} {
		t.Run(name, func(t *testing.T) {
			b := lay(t)
			to := b.random(1, g.Entries())
			b.DropValues(to, from, g, d)
			var want []float64
			for r := range g.Rows {
				for e := g.Indptr[r]; e < g.Indptr[r+1]; e++ {
					v := 2 * float64(g.Values[e])
					if !from.None() {
						v = 2 * given.F64()[len(want)]
					}
					if d.Key.With(uint64(vertices[r])).Column(uint32(g.Indices[e])) < keyed.Threshold(.5) {
						v = 0
					}
					want = append(want, v)
				}
			}
			b.is("to", to, want...)
		})
	}
}

func TestMaxKeepsTheFirstOfEqualOnes(t *testing.T) {
	b := lay(t)
	y, which := b.of(1, 3, 9, 9, 9), b.arena.Alloc(tensor.I32, 1, 3)
	b.Max(y, which, b.of(1, 3, 1, 2, 3), 4, true)
	b.Max(y, which, b.of(1, 3, 1, 3, 2), 5, false)
	b.is("y", y, 1, 3, 3)
	b.is("which", which, 4, 5, 4)
	dx := b.random(1, 3)
	b.MaxBack(dx, b.of(1, 3, 7, 8, 9), which, 4)
	b.is("dx", dx, 7, 0, 9)
}

func TestScaleRows(t *testing.T) {
	b := lay(t)
	x := b.of(2, 2, 1, 2, 3, 4)
	b.ScaleRows(x, x, b.of(2, 1, 2, -1))
	b.is("x", x, 2, 4, -3, -4)
	b.Combine(x, 2, x, -1, b.of(2, 2, 1, 1, 1, 1))
	b.is("2*x - 1", x, 3, 7, -7, -9)
	narrow := b.arena.Alloc(tensor.F32, 1, 2)
	b.Write32(narrow, []float32{1.5, -2})
	b.Combine(narrow, -1, narrow, 0, none)
	single := make([]float32, 2)
	b.Read32(single, narrow)
	if single[0] != -1.5 || single[1] != 2 {
		t.Errorf("it reads %v", single)
	}
}
