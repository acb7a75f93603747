//go:build !amd64

package edges

func (e *Edges) productsOf(to []float32, toStride, heads int, a, x []float32, xStride int, indices []int32) {
	productsGeneric(to, toStride, heads, a, x, xStride, indices)
}

func (e *Edges) leakyProductsOf(to []float32, heads int, a, x []float32, xStride int, indices []int32, add []float32, slope float32) {
	leakyProductsGeneric(to, heads, a, x, xStride, indices, add, slope)
}

func (e *Edges) maximaOf(y []float32, which []int32, x []float32, xStride int, indices []int32, begin bool) {
	maxGeneric(y, which, x, xStride, indices, begin)
}

func (e *Edges) leakyBackOf(dadd, da, a, x []float32, xStride int, indices []int32, add, grads []float32, stride, heads int, slope float32) {
	leakyBackGeneric(dadd, da, a, x, xStride, indices, add, grads, stride, heads, slope)
}
