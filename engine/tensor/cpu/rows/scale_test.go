package rows

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Rows of one column are multiplied as others are, with and without gaps between them.
func TestScaledRowsOfOneColumn(t *testing.T) {
	for _, n := range []int{0, 1, 7, 300} {
		wide, by, want := make([]float32, 3*n), make([]float32, n), make([]float32, n)
		x := make([]float32, n)
		for i := range n {
			x[i], by[i] = float32(i)-2.5, 1.5-float32(i%4)
			wide[3*i], want[i] = x[i], x[i]*by[i]
		}
		dense, apart, scale := tensor.OverF32(n, 1, x), tensor.OverF32(n, 3, wide).View(0, n, 0, 1), tensor.OverF32(n, 1, by)
		ScaleRows(dense, dense, scale)
		ScaleRows(apart, apart, scale)
		for i := range n {
			if x[i] != want[i] || wide[3*i] != want[i] {
				t.Fatalf("row %d of %d is %v, and with gaps %v, and not %v", i, n, x[i], wide[3*i], want[i])
			}
		}
	}
}
