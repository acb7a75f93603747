//go:build cuda && emulator

package device

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// widest is the most columns that a grid has room for.
const widest = mostAcross * columnsOfWarp

// All weights of a model are one row, of any length.
func TestLongRows(t *testing.T) {
	d := opened(t, Options{})
	const n = widest + 1
	w := matrix(t, d, 1, n, func(i int) float32 { return float32(i % 1000) })
	d.Combine(w, 2, w, 1, w)
	d.SGD(w, w, tensor.Matrix{}, tensor.SGDStep{Rate: .5})
	got := numbers(d, w)
	for _, i := range []int{0, 1, 127, foldedCols - 1, foldedCols, n - 2, n - 1} {
		if want := 1.5 * float32(i%1000); got[i] != want {
			t.Errorf("%d is %g and not %g", i, got[i], want)
		}
	}
	if !d.Finite(w) {
		t.Error("something is not finite")
	}
	d.Write32(w.View(0, 1, n-1, 1), []float32{got[1] / 0x1p-126 / 0x1p-126})
	if d.Finite(w) {
		t.Error("what is infinite in the last column is not seen")
	}
}

func TestGridsThatNoGPUHas(t *testing.T) {
	d, err := Open(0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	m := over(tensor.F32, 1, widest+1, nowhere)
	d.ScaleRows(m, m, over(tensor.F32, 1, 1, nowhere))
	if err := d.Err(); err == nil || !strings.Contains(err.Error(), "kernel scale_rows: 1 x 65536 x 1 blocks, and a GPU has at most 65535 along y and z") {
		t.Errorf("got %v", err)
	}
}
