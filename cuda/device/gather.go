//go:build cuda

package device

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Gather implements tensor.Rows. The parts must be in ascending order of First.
func (d *Device) Gather(y tensor.Matrix, parts []tensor.Part, ids []uint32) {
	must(len(ids) == y.Rows, "there are as many ids as rows to gather")
	mustHold("y", y, y.Rows, y.Cols)
	have := [2]bool{} // F32, BF16
	for i := range parts {
		mustHold("a part", parts[i].X, parts[i].X.Rows, y.Cols)
		have[kind(parts[i].X.Type)] = true
	}
	if y.Rows == 0 || y.Cols == 0 || !d.begin() {
		return
	}
	defer d.end()
	rows := lent(d, ids)
	if !have[0] || !have[1] {
		d.gather(y, parts, rows, parts[0].X.Type)
		return
	}
	// Gather the parts of one type, with zeros for the others, then add those of the
	// other type.
	d.gather(y, parts, rows, tensor.F32)
	others := over(tensor.BF16, y.Rows, y.Cols, d.room(2*y.Rows*y.Cols))
	d.gather(others, parts, rows, tensor.BF16)
	d.combine(y, 1, y, 1, others)
}

// kind returns the index of a type of numbers.
func kind(t tensor.Type) int {
	if t == tensor.BF16 {
		return 1
	}
	return 0
}

var gathers = [2][2]string{{"gather_f32_f32", "gather_f32_bf16"}, {"gather_bf16_f32", "gather_bf16_bf16"}}

// gather gathers from the parts of type t. Rows of other parts are zero.
func (d *Device) gather(y tensor.Matrix, parts []tensor.Part, ids address, t tensor.Type) {
	var zeros address
	l := &d.lists
	l.first, l.base, l.stride = l.first[:0], l.base[:0], l.stride[:0]
	for i := range parts {
		base, stride := addressOf(parts[i].X), parts[i].X.Stride
		if parts[i].X.Type != t {
			if zeros == 0 {
				row := y.Cols * t.Bytes()
				zeros = d.room(row)
				d.clear(zeros, row)
			}
			base, stride = zeros, 0
		}
		l.first, l.base, l.stride = append(l.first, parts[i].First), append(l.base, base), append(l.stride, int64(stride))
	}
	first, base, strides := lent(d, l.first), lent(d, l.base), lent(d, l.stride)
	d.launch(gathers[kind(y.Type)][kind(t)], grid{blocks(y.Rows, warpsOfBlock*rowsOfGather), blocks(y.Cols, columnsOfWarp), 1}, at(y), stride(y), number(y.Rows), number(y.Cols),
		first.argument(), base.argument(), strides.argument(), number(len(parts)), ids.argument())
}

// ScatterAdd implements tensor.Rows. The host groups rows by destination, so that each is
// written once and sums are in the order of i.
func (d *Device) ScatterAdd(y, x tensor.Matrix, rows []int32) {
	mustCompute(y)
	mustBe("x", x, tensor.F32, len(rows), y.Cols)
	for _, r := range rows {
		must(uint(r) < uint(y.Rows), "a row that is added to exists")
	}
	if len(rows) == 0 || !d.begin() {
		return
	}
	defer d.end()
	l := &d.lists
	l.group(rows, y.Rows)
	indptr, order := lent(d, l.indptr), lent(d, l.order)
	g, each := byLists(y.Rows, y.Cols)
	d.launchEnding("aggregate_f32", g, ending{scale: 1}, at(y), stride(y), number(y.Rows), number(y.Cols), number(each),
		indptr.argument(), order.argument(), address(0).argument(), at(x), stride(x), truth(false), truth(true))
}

// lists are the host lists that operations build.
type lists struct {
	// Of the parts of a Gather.
	first  []uint32
	base   []address
	stride []int64
	// Of a ScatterAdd: row r is the sum of the rows in order[indptr[r]:indptr[r+1]].
	indptr []int64
	order  []int32
}

// group sorts rows, which are less than n, by destination.
func (l *lists) group(rows []int32, n int) {
	l.indptr = slices.Grow(l.indptr[:0], n+2)[:n+2]
	l.order = slices.Grow(l.order[:0], len(rows))[:len(rows)]
	clear(l.indptr)
	for _, r := range rows {
		l.indptr[r+2]++
	}
	for r := range n {
		l.indptr[r+2] += l.indptr[r+1]
	}
	// Counts are stored two places further, so that filling turns each into its row's
	// end.
	for i, r := range rows {
		l.order[l.indptr[r+1]] = int32(i)
		l.indptr[r+1]++
	}
	l.indptr = l.indptr[:n+1]
}
