package reference

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Zero implements tensor.Rows, for any type.
func (*Device) Zero(m tensor.Matrix) {
	zeros := make([]float64, m.Cols)
	for i := range m.Rows {
		store(m, i, zeros)
	}
}

// Combine implements tensor.Rows. A given b is used whatever beta is.
func (*Device) Combine(y tensor.Matrix, alpha float64, a tensor.Matrix, beta float64, b tensor.Matrix) {
	mustBe("a", a, y.Rows, y.Cols)
	mustBeOrNone("b", b, y.Rows, y.Cols)
	ra, rb, sum := read(a), read(b), make([]float64, y.Cols)
	for i := range y.Rows {
		for j, x := range ra.row(i) {
			sum[j] = alpha * x
		}
		if !b.None() {
			for j, x := range rb.row(i) {
				sum[j] += beta * x
			}
		}
		store(y, i, sum)
	}
}

// Gather implements tensor.Rows. The parts ascend by First.
func (*Device) Gather(y tensor.Matrix, parts []tensor.Part, ids []uint32) {
	must(len(ids) == y.Rows, "%d ids for %d rows", len(ids), y.Rows)
	from := make([]*reader, len(parts))
	for p := range parts {
		from[p] = read(parts[p].X)
	}
	for i, id := range ids {
		p := len(parts) - 1
		for p >= 0 && parts[p].First > id {
			p--
		}
		must(p >= 0 && int(id-parts[p].First) < parts[p].X.Rows, "no part holds vertex %d", id)
		must(parts[p].X.Cols == y.Cols, "a part of %d columns gathered into %d", parts[p].X.Cols, y.Cols)
		store(y, i, from[p].row(int(id-parts[p].First)))
	}
}

// ScatterAdd implements tensor.Rows.
func (*Device) ScatterAdd(y, x tensor.Matrix, rows []int32) {
	mustBe("x", x, len(rows), y.Cols)
	from := read(x)
	for i, r := range rows {
		must(r >= 0 && int(r) < y.Rows, "row %d of %d", r, y.Rows)
		to := row(y, int(r))
		for j, v := range from.row(i) {
			to[j] += v
		}
	}
}

// ScaleRows implements tensor.Rows.
func (*Device) ScaleRows(y, x, scale tensor.Matrix) {
	mustBe("x", x, y.Rows, y.Cols)
	mustBe("scale", scale, y.Rows, 1)
	from, by := read(x), read(scale)
	for i := range y.Rows {
		to, s := row(y, i), by.row(i)[0]
		for j, v := range from.row(i) {
			to[j] = s * v
		}
	}
}

// Max implements tensor.Rows. A NaN of x is not larger than anything.
func (*Device) Max(y, which, x tensor.Matrix, index int, first bool) {
	mustBe("which", which, y.Rows, y.Cols)
	mustBe("x", x, y.Rows, y.Cols)
	from := read(x)
	for i := range y.Rows {
		to, w := row(y, i), chosen(which, i)
		for j, v := range from.row(i) {
			if first || v > to[j] {
				to[j], w[j] = v, int32(index)
			}
		}
	}
}

// MaxBack implements tensor.Rows.
func (*Device) MaxBack(dx, dy, which tensor.Matrix, index int) {
	mustBe("dy", dy, dx.Rows, dx.Cols)
	mustBe("which", which, dx.Rows, dx.Cols)
	from := read(dy)
	for i := range dx.Rows {
		to, w := row(dx, i), chosen(which, i)
		for j, v := range from.row(i) {
			to[j] = 0
			if w[j] == int32(index) {
				to[j] = v
			}
		}
	}
}

// ColumnSums implements tensor.Rows.
func (*Device) ColumnSums(sums, x tensor.Matrix) {
	mustBe("sums", sums, 1, x.Cols)
	from, to := read(x), row(sums, 0)
	for i := range x.Rows {
		for j, v := range from.row(i) {
			to[j] += v
		}
	}
}

// Finite implements tensor.Rows.
func (*Device) Finite(m tensor.Matrix) bool {
	from := read(m)
	for i := range m.Rows {
		for _, v := range from.row(i) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return false
			}
		}
	}
	return true
}
