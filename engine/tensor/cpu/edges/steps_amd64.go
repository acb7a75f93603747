package edges

import "github.com/hopmesh/hopmesh/engine/tensor/cpu/family"

// productsOf writes, for each entry, the product of its source's row and a, head by head,
// to a row of to. There must be at least one entry and one column.
func (e *Edges) productsOf(to []float32, toStride, heads int, a, x []float32, xStride int, indices []int32) {
	if e.family == family.Generic {
		productsGeneric(to, toStride, heads, a, x, xStride, indices)
		return
	}
	n := len(indices)
	products(&to[0], toStride*4, &a[0], &x[0], xStride*4, &indices[0], n, heads, len(a)/heads, 4*aheadOf(x, len(a)), &indices[n-1])
}

// leakyProductsOf is productsOf for leaky(source + add).
func (e *Edges) leakyProductsOf(to []float32, heads int, a, x []float32, xStride int, indices []int32, add []float32, slope float32) {
	if e.family == family.Generic {
		leakyProductsGeneric(to, heads, a, x, xStride, indices, add, slope)
		return
	}
	n := len(indices)
	leakyProducts(&to[0], heads*4, &a[0], &x[0], xStride*4, &indices[0], n, heads, len(a)/heads, &add[0], slope, 4*aheadOf(x, len(a)), &indices[n-1])
}

// leakyBackOf is its backward pass. It adds to the gradients of add and of a; stride is
// the distance between the gradients of consecutive entries.
func (e *Edges) leakyBackOf(dadd, da, a, x []float32, xStride int, indices []int32, add, grads []float32, stride, heads int, slope float32) {
	if e.family == family.Generic {
		leakyBackGeneric(dadd, da, a, x, xStride, indices, add, grads, stride, heads, slope)
		return
	}
	width := len(a) / heads
	for h := range heads {
		at := h * width
		leakyBack(&dadd[at], &da[at], &a[at], &x[at], xStride*4, &indices[0], len(indices), width, &add[at], &grads[h], stride*4, slope)
	}
}

// maximaOf computes the maxima of a row, or with begin unset updates them.
func (e *Edges) maximaOf(y []float32, which []int32, x []float32, xStride int, indices []int32, begin bool) {
	if e.family == family.Generic {
		maxGeneric(y, which, x, xStride, indices, begin)
		return
	}
	first := 0
	if begin {
		first = 1
	}
	maxima(&y[0], &which[0], len(y), &x[0], xStride*4, &indices[0], len(indices), first)
}

// aheadOf returns the prefetch distance in entries for rows of so many columns.
func aheadOf(x []float32, cols int) int {
	if len(x)*4 <= nearBytes {
		return 0
	}
	return min(max(aheadBytes/(cols*4), 4), farthest)
}
