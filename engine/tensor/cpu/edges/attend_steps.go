package edges

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/rows"
)

// The steps from scores to weights. They work on entries of one row, with one number per
// head; stat holds two per head, the largest score and the sum.

// scores computes as many scores as w has room for, starting with the given entry.
func (a *attention) scores(w []float32, row int, from int64) {
	n := len(w) / a.heads
	if n == 0 {
		return
	}
	indices := a.indices[from : from+int64(n)]
	if a.a == nil {
		right := a.right.F32()[row*a.right.Stride:][:a.heads]
		scoresGeneric(w, a.left.F32(), a.left.Stride, right, indices, a.slope)
		return
	}
	if a.x.Cols == 0 {
		clear(w)
		return
	}
	to := a.to.F32()[row*a.to.Stride:][:a.x.Cols]
	a.e.leakyProductsOf(w, a.heads, a.a, a.x.F32(), a.x.Stride, indices, to, a.slope)
}

// leaky is branch-free, since signs can't be predicted.
func leaky(z, slope float32) float32 { return z * steep(z, slope) }

// steep returns slope if z is negative, else 1.
func steep(z, slope float32) float32 {
	const one = 0x3f800000
	negative := uint32(int32(math.Float32bits(z)) >> 31)
	return math.Float32frombits(one ^ (one^math.Float32bits(slope))&negative)
}

func scoresGeneric(w, left []float32, stride int, right []float32, indices []int32, slope float32) {
	for i, s := range indices {
		l := left[int(s)*stride:][:len(right)]
		w := w[i*len(right):][:len(right)]
		for h, r := range right {
			w[h] = leaky(l[h]+r, slope)
		}
	}
}

// largest sets the largest scores in stat, or updates them. Without entries they and the
// sums are 0.
func largest(stat, w []float32, begin bool) {
	h := len(stat) / 2
	if begin {
		clear(stat)
		for i := range min(h, len(w)) {
			stat[2*i] = w[i]
		}
	}
	for at := 0; at < len(w); at += h {
		for i, v := range w[at:][:h] {
			stat[2*i] = max(stat[2*i], v)
		}
	}
}

// lower subtracts the largest.
func lower(w, stat []float32) {
	h := len(stat) / 2
	for at := 0; at < len(w); at += h {
		row := w[at:][:h]
		for i := range row {
			row[i] -= stat[2*i]
		}
	}
}

func exp(w []float32) { rows.Exp(w, w) }

// total adds to the sums in stat; with begin they start at 0.
func total(stat, w []float32, begin bool) {
	h := len(stat) / 2
	if begin {
		for i := range h {
			stat[2*i+1] = 0
		}
	}
	for at := 0; at < len(w); at += h {
		for i, v := range w[at:][:h] {
			stat[2*i+1] += v
		}
	}
}

// dropped writes the weights of entries from this one on after dropout, at multiples of
// stride. to may be w.
func (a *attention) dropped(to []float32, stride int, w []float32, row int, from int64) {
	h := a.heads
	if a.below == 0 {
		for i := range len(w) / h {
			copy(to[i*stride:][:h], w[i*h:])
		}
		return
	}
	target := a.drop.With(uint64(a.ends[a.own+row]))
	for i := range len(w) / h {
		source := a.ends[a.indices[from+int64(i)]]
		dropHeads(to[i*stride:][:h], w[i*h:], target.With(uint64(source)), a.below, a.kept)
	}
}

func dropHeads(to, w []float32, key keyed.Key, below uint32, kept float32) {
	for i, v := range w[:len(to)] {
		// All bits are 1 if it is kept. A branch could not be predicted.
		stays := ^uint32((int64(key.Column(uint32(i))) - int64(below)) >> 63)
		to[i] = math.Float32frombits(math.Float32bits(v*kept) & stays)
	}
}
