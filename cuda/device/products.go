//go:build cuda

package device

import (
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A block computes a tile of a product (gemm.h). A product with few tiles and a long k is
// split along k until it has enough blocks to fill a large GPU. The number does not
// depend on the actual GPU, since the order of sums follows from it.
const (
	tileRows            = 128
	tileColumns, narrow = 128, 64
	enoughBlocks        = 264
	leastDepth          = 256 // of a part
	depthUnit           = 32
	mostParts           = 512
)

// cut returns the length and the number of the parts of k.
func cut(tiles, k int) (each, parts int) {
	parts = min(enoughBlocks/max(1, tiles), k/leastDepth, mostParts)
	if parts < 2 {
		return blocks(max(1, k), depthUnit) * depthUnit, 1
	}
	each = blocks(blocks(k, parts), depthUnit) * depthUnit
	return each, blocks(k, each)
}

// The methods of multiplication.
const (
	wayF32 = iota
	wayTF32
	wayBF16
)

// The kernels for wide tiles and for narrow ones. Products of floats have narrow ones only.
var products, narrowProducts = [...][3]string{
	wayTF32: {tensor.NN: "gemm_tf32_nn", tensor.TN: "gemm_tf32_tn", tensor.NT: "gemm_tf32_nt"},
	wayBF16: {tensor.NN: "gemm_bf16_nn", tensor.TN: "gemm_bf16_tn", tensor.NT: "gemm_bf16_nt"},
}, [...][3]string{
	wayF32:  {tensor.NN: "gemm_f32_nn", tensor.TN: "gemm_f32_tn", tensor.NT: "gemm_f32_nt"},
	wayTF32: {tensor.NN: "gemm_tf32_nn_narrow", tensor.TN: "gemm_tf32_tn_narrow", tensor.NT: "gemm_tf32_nt_narrow"},
	wayBF16: {tensor.NN: "gemm_bf16_nn_narrow", tensor.TN: "gemm_bf16_tn_narrow", tensor.NT: "gemm_bf16_nt_narrow"},
}

// threadsOf returns the threads of a block.
func threadsOf(way int) int {
	if way == wayF32 {
		return threads
	}
	return 128
}

// tile returns the kernel of a product, and the columns of its tiles: narrow ones where
// half of the last wide one would be empty.
func tile(way int, shape tensor.Shape, n int) (kernel string, columns int) {
	if over := n % tileColumns; way == wayF32 || 0 < over && over <= narrow {
		return narrowProducts[way][shape], narrow
	}
	return products[way][shape], tileColumns
}

// MatMul implements tensor.Products. Options and SetBF16 determine how its operands are
// rounded.
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
	case d.options.F32:
		way = wayF32
	}
	if d.blas != nil && k > 0 && d.matMulByBlas(c, a, b, shape, k, add, e, way) {
		return
	}
	kernel, columns := tile(way, shape, n)
	tiles := blocks(m, tileRows) * blocks(n, columns)
	each, parts := cut(tiles, k)
	var partial address
	if parts > 1 {
		partial = d.room(4 * parts * m * n)
	}
	end := d.ending(e, m)
	d.launchEndingOf(kernel, grid{tiles, 1, parts}, threadsOf(way), end, at(c), stride(c), at(a), stride(a), at(b), stride(b),
		number(m), number(n), number(k), number(each), partial.argument(), truth(add))
	if parts > 1 {
		d.launchEnding("gemm_sum", grid{m, blocks(n, tileColumns), 1}, end, at(c), stride(c), partial.argument(), number(parts), number(m), number(n), truth(add))
	}
}

var roundings = [...]driver.Rounding{wayF32: driver.Exact, wayTF32: driver.ToTF32, wayBF16: driver.ToBF16}

// matMulByBlas is MatMul by cuBLAS, followed by the epilogue. It reports whether it did
// the work; our kernels do what cuBLAS rejects.
func (d *Device) matMulByBlas(c, a, b tensor.Matrix, shape tensor.Shape, k int, add bool, e *tensor.Epilogue, way int) bool {
	if !d.flush() {
		return true
	}
	operand := func(m tensor.Matrix, transposed bool) driver.Operand {
		return driver.Operand{At: addressOf(m).memory(0), Stride: max(m.Stride, 1), Transposed: transposed}
	}
	err := d.on.Product(d.blas, operand(c, false), operand(a, shape == tensor.TN), operand(b, shape == tensor.NT), c.Rows, c.Cols, k, add, roundings[way])
	if err != nil {
		return errors.Is(err, driver.ErrLost) && !d.check(err)
	}
	d.counts.Products++
	if e != nil {
		d.launchEnding("apply", byRows(c.Rows, c.Cols), d.ending(e, c.Rows), at(c), stride(c), at(c), stride(c), number(c.Rows), number(c.Cols))
	}
	return true
}

// openBlas initialises cuBLAS if it was requested. The device's name shows the outcome;
// without cuBLAS our kernels compute the products.
func (d *Device) openBlas() {
	if !driver.WantsBlas() {
		return
	}
	blas, err := d.on.NewBlas(d.stream)
	if err != nil {
		d.name += fmt.Sprintf(" with its own products: %v", err)
		return
	}
	d.blas = blas
	d.name += " with cuBLAS " + blas.Version()
}

func (d *Device) closeBlas() error {
	if d.blas == nil {
		return nil
	}
	return d.on.CloseBlas(d.blas)
}
