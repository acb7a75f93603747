//go:build cuda

package device

import "github.com/hopmesh/hopmesh/engine/tensor"

// A block makes a tile of a product (gemm.h). A product of few tiles whose k is long
// is cut along k, until there are as many blocks as fill a large GPU: how many does
// not depend on which GPU it is, as the order of sums follows from it.
const (
	tileRows, tileColumns = 128, 64
	enoughBlocks          = 264
	leastDepth            = 256 // of a part
	depthUnit             = 32
	mostParts             = 512
)

// cut is how long the parts of k are, and how many.
func cut(tiles, k int) (each, parts int) {
	parts = min(enoughBlocks/max(1, tiles), k/leastDepth, mostParts)
	if parts < 2 {
		return blocks(max(1, k), depthUnit) * depthUnit, 1
	}
	each = blocks(blocks(k, parts), depthUnit) * depthUnit
	return each, blocks(k, each)
}

// The ways to multiply.
const (
	wayF32 = iota
	wayTF32
	wayBF16
)

var products = [...][3]string{
	wayF32:  {tensor.NN: "gemm_f32_nn", tensor.TN: "gemm_f32_tn", tensor.NT: "gemm_f32_nt"},
	wayTF32: {tensor.NN: "gemm_tf32_nn", tensor.TN: "gemm_tf32_tn", tensor.NT: "gemm_tf32_nt"},
	wayBF16: {tensor.NN: "gemm_bf16_nn", tensor.TN: "gemm_bf16_tn", tensor.NT: "gemm_bf16_nt"},
}

// MatMul is as tensor.Products says. Its operands are rounded as Options and SetBF16
// say.
func (d *Device) MatMul(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
	m, n, k := c.Rows, c.Cols, a.Cols
	switch shape {
	case tensor.NN:
		mustBe("a", a, tensor.F32, m, k)
		mustBe("b", b, tensor.F32, k, n)
	case tensor.TN:
		k = a.Rows
		mustBe("a", a, tensor.F32, k, m)
		mustBe("b", b, tensor.F32, k, n)
	case tensor.NT:
		mustBe("a", a, tensor.F32, m, k)
		mustBe("b", b, tensor.F32, n, k)
	}
	mustCompute(c)
	mustFit(e, c)
	if m == 0 || n == 0 || !d.begin() {
		return
	}
	defer d.end()
	way := wayTF32
	switch {
	case d.bf16:
		way = wayBF16
		a, b = d.rounded(a), d.rounded(b)
	case d.options.F32:
		way = wayF32
	}
	tiles := blocks(m, tileRows) * blocks(n, tileColumns)
	each, parts := cut(tiles, k)
	var partial address
	if parts > 1 {
		partial = d.room(4 * parts * m * n)
	}
	end := d.ending(e, m)
	d.launchEnding(products[way][shape], grid{tiles, 1, parts}, end, at(c), stride(c), at(a), stride(a), at(b), stride(b),
		number(m), number(n), number(k), number(each), partial.argument(), truth(add))
	if parts > 1 {
		d.launchEnding("gemm_sum", byRows(m, n), end, at(c), stride(c), partial.argument(), number(parts), number(m), number(n), truth(add))
	}
}

// rounded is m as BF16, rows being aligned for the fast way of copies.
func (d *Device) rounded(m tensor.Matrix) tensor.Matrix {
	stride := (m.Cols + 7) &^ 7
	r := over(tensor.BF16, m.Rows, stride, d.room(2*m.Rows*stride)).View(0, m.Rows, 0, m.Cols)
	d.convert(r, m)
	return r
}
