package rows

import "github.com/hopmesh/hopmesh/engine/tensor"

// Densify writes n rows of g from row first.
func Densify(y tensor.Matrix, g *tensor.CSR, first, n int) {
	for r := first; r < first+n; r++ {
		to := row(y, r)
		clear(to)
		for e := g.Indptr[r]; e < g.Indptr[r+1]; e++ {
			v := float32(1)
			if g.Values != nil {
				v = g.Values[e]
			}
			to[g.Indices[e]] += v
		}
	}
}

// DropValues applies dropout to the values of the entries of n rows of g from row first.
func DropValues(to, from tensor.Matrix, g *tensor.CSR, first, n int, dropout tensor.Dropout) {
	low, high := int(g.Indptr[first]-g.Indptr[0]), int(g.Indptr[first+n]-g.Indptr[0])
	if low == high {
		return
	}
	values := to.F32()
	if from.None() {
		for i := low; i < high; i++ {
			values[i] = 1
		}
	} else {
		copy(values[low:high], from.F32()[low:high])
	}
	d := dropping(dropout, first, n)
	if d.vertices == nil {
		return
	}
	for r := range n {
		key := d.key.With(uint64(d.vertices[r]))
		start, end := g.Indptr[first+r], g.Indptr[first+r+1]
		values := values[start-g.Indptr[0]:]
		if kernels.drop != nil {
			if n := int(end - start); n > 0 {
				kernels.drop(&values[0], &values[0], &g.Indices[start], n, uint64(key), d.threshold, d.scale)
			}
			continue
		}
		for i, c := range g.Indices[start:end] {
			if key.Column(uint32(c)) < d.threshold {
				values[i] = 0
			} else {
				values[i] *= d.scale
			}
		}
	}
}
