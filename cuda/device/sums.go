//go:build cuda

package device

import "github.com/hopmesh/hopmesh/engine/tensor"

// Column sums are first computed per block of rows. The limits on the number of blocks
// and on their rows make the order of sums depend on the shape alone.
const (
	mostSums  = 256
	leastRows = 64
)

// sums returns the rows per block and the number of blocks.
func sums(rows int) (each, parts int) {
	each = max(leastRows, blocks(rows, mostSums))
	return each, blocks(rows, each)
}

// addPartials adds the sums of blocks to a matrix of one row.
func (d *Device) addPartials(to tensor.Matrix, partial address, parts int) {
	d.launch("add_partials", grid{blocks(to.Cols, lanes), 1, 1}, at(to), partial.argument(), number(parts), number(to.Cols))
}

// ColumnSums implements tensor.Rows.
func (d *Device) ColumnSums(to, x tensor.Matrix) {
	mustCompute(x)
	mustBe("sums", to, tensor.F32, 1, x.Cols)
	if x.Rows == 0 || !d.begin() {
		return
	}
	defer d.end()
	each, parts := sums(x.Rows)
	partial := d.room(4 * parts * x.Cols)
	d.launch("column_sums", grid{parts, blocks(x.Cols, columnsOfWarp), 1}, partial.argument(), at(x), stride(x),
		number(x.Rows), number(x.Cols), number(each))
	d.addPartials(to, partial, parts)
}

// ApplyBack implements tensor.Rows.
func (d *Device) ApplyBack(dx, dbias, dy, y tensor.Matrix, e *tensor.Epilogue) {
	mustCompute(dx)
	mustBe("dy", dy, tensor.F32, dx.Rows, dx.Cols)
	mustBe("y", y, tensor.F32, dx.Rows, dx.Cols)
	if e != nil {
		must(e.Dropout.P <= 0 || len(e.Dropout.Vertices) >= dx.Rows, "a row is dropped from and has no vertex")
	}
	if !dbias.None() {
		mustBe("dbias", dbias, tensor.F32, 1, dx.Cols)
	}
	if dx.Rows == 0 || !d.begin() {
		return
	}
	defer d.end()
	each, parts, partial := warpsOfBlock, blocks(dx.Rows, warpsOfBlock), address(0)
	if !dbias.None() {
		each, parts = sums(dx.Rows)
		partial = d.room(4 * parts * dx.Cols)
	}
	d.launchEnding("apply_back", grid{parts, blocks(dx.Cols, columnsOfWarp), 1}, d.ending(e, dx.Rows),
		at(dx), stride(dx), partial.argument(), at(dy), stride(dy), at(y), stride(y), number(dx.Rows), number(dx.Cols), number(each))
	if partial != 0 {
		d.addPartials(dbias, partial, parts)
	}
}
