//go:build cuda

package device

import (
	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// heads is the layout of a row's heads for the kernels (heads.h): n heads of width
// columns, each processed by group lanes of a warp.
type heads struct{ n, width, group int }

const lanes = 32

// headsOf returns the layout of x, whose columns are n heads of equal width.
func headsOf(x tensor.Matrix, n int) heads {
	must(n > 0 && x.Cols%n == 0, "the columns are those of so many heads")
	h := heads{n, x.Cols / n, 1}
	for h.group < lanes && 4*h.group < h.width {
		h.group *= 2
	}
	return h
}

// grid is the launch of a kernel with a warp for each few heads of a row. tiled is that
// of a kernel with a warp for each tile of them and the given number of rows per block.
func (h heads) grid(rows int) grid {
	return grid{blocks(rows, warpsOfBlock), blocks(h.n, lanes/h.group), 1}
}

func (h heads) tiled(rows, each int) grid {
	return grid{blocks(rows, each), blocks(h.n, lanes/h.group) * max(1, blocks(h.width, columnsOfWarp)), 1}
}

// HeadDot implements tensor.Attentions.
func (d *Device) HeadDot(y, x, a tensor.Matrix) {
	h := headsOf(x, y.Cols)
	mustCompute(x)
	mustBe("y", y, tensor.F32, x.Rows, y.Cols)
	mustBe("a", a, tensor.F32, 1, x.Cols)
	if !d.begin() {
		return
	}
	defer d.end()
	d.launch("head_dot", h.grid(x.Rows), at(y), stride(y), at(x), stride(x), at(a), number(x.Rows),
		number(h.n), number(h.width), number(h.group))
}

// HeadDotBack implements tensor.Attentions.
func (d *Device) HeadDotBack(dx, da, dy, x, a tensor.Matrix) {
	h := headsOf(x, dy.Cols)
	mustCompute(x)
	mustBe("dx", dx, tensor.F32, x.Rows, x.Cols)
	mustBe("da", da, tensor.F32, 1, x.Cols)
	mustBe("dy", dy, tensor.F32, x.Rows, dy.Cols)
	mustBe("a", a, tensor.F32, 1, x.Cols)
	if x.Rows == 0 || x.Cols == 0 || !d.begin() {
		return
	}
	defer d.end()
	each, parts := sums(x.Rows)
	partial := d.room(4 * parts * x.Cols)
	d.launch("head_dot_back", grid{parts, blocks(x.Cols, columnsOfWarp), 1}, at(dx), stride(dx), partial.argument(), at(dy), stride(dy),
		at(x), stride(x), at(a), number(x.Rows), number(x.Cols), number(h.width), number(each))
	d.addPartials(da, partial, parts)
}

// launchDropping launches a kernel whose last parameters are those of dropped weights
// (attend.h).
func (d *Device) launchDropping(name string, g grid, e ending, own int, arguments ...driver.Argument) {
	d.arguments = append(append(d.arguments[:0], arguments...), driver.Int64(int64(e.key)), e.vertices.argument(), number(own),
		driver.Int32(int32(e.threshold)), driver.Float32(e.scale))
	d.launch(name, g, d.arguments...)
}
