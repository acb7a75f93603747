//go:build cuda

package device

import "github.com/hopmesh/hopmesh/engine/tensor"

// Sums of columns are of blocks of rows first, of which there are at most so many, and
// which have at least so many rows; so the order depends on the shape alone.
const (
	mostSums  = 256
	leastRows = 64
)

// sums is how many rows each block adds up, and how many blocks there are.
func sums(rows int) (each, parts int) {
	each = max(leastRows, blocks(rows, mostSums))
	return each, blocks(rows, each)
}

// addPartials adds the sums of blocks to a matrix of one row.
func (d *Device) addPartials(to tensor.Matrix, partial address, parts int) {
	d.launch("add_partials", grid{blocks(to.Cols, lanes), 1, 1}, at(to), partial.argument(), number(parts), number(to.Cols))
}

// ColumnSums is as tensor.Rows says.
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

// ApplyBack is as tensor.Rows says.
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
