package rows

import (
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// everyFloat calls f with slices that together hold numbers of all magnitudes.
func everyFloat(f func(x []float32)) {
	x := make([]float32, 0, 4099)
	for u := uint64(0); u <= math.MaxUint32; u += 9973 {
		x = append(x, math.Float32frombits(uint32(u)))
		if len(x) == cap(x) {
			f(x)
			x = x[:0]
		}
	}
	f(x)
}

// off is how far got is from want, relative to it or to the least normal number.
func off(got float32, want float64) float64 {
	if float64(got) == want || math.IsNaN(want) && got != got {
		return 0
	}
	if want > math.MaxFloat32 && math.IsInf(float64(got), 1) {
		return 0
	}
	return math.Abs(float64(got)-want) / max(math.Abs(want), 0x1p-126)
}

func TestExp(t *testing.T) {
	worst, at := 0.0, float32(0)
	y := make([]float32, 4099)
	everyFloat(func(x []float32) {
		Exp(y, x)
		for i, v := range x {
			if d := off(y[i], math.Exp(float64(v))); !(d <= worst) {
				worst, at = d, v
			}
		}
	})
	t.Logf("exp is off by %.2g at most", worst)
	if worst > 2e-7 {
		t.Errorf("exp(%v) is off by %v of it", at, worst)
	}
}

func TestELU(t *testing.T) {
	worst, at := 0.0, float32(0)
	y := make([]float32, 4099)
	everyFloat(func(x []float32) {
		n := len(x)
		Apply(tensor.OverF32(1, n, y[:n]), tensor.OverF32(1, n, x), 0, 1, &tensor.Epilogue{Activation: tensor.ELU})
		for i, v := range x {
			want := float64(v)
			if v < 0 {
				want = math.Expm1(want)
			}
			if d := off(y[i], want); !(d <= worst) {
				worst, at = d, v
			}
		}
	})
	t.Logf("ELU is off by %.2g at most", worst)
	if worst > 3e-7 {
		t.Errorf("ELU(%v) is off by %v of it", at, worst)
	}
}

func TestBinary(t *testing.T) {
	for x := float32(-250); x < 250; x += 0.37 {
		var y [1]float32
		loss := binaryRow(y[:], []float32{x}, 1)
		if d := off(loss, math.Max(float64(x), 0)+math.Log1p(math.Exp(-math.Abs(float64(x))))); d > 4e-7 {
			t.Errorf("the loss of no to %v is %v, off by %v", x, loss, d)
		}
		if d := off(y[0], 1/(1+math.Exp(-float64(x)))); d > 4e-7 {
			t.Errorf("its derivative is %v, off by %v", y[0], d)
		}
	}
}

func TestBF16(t *testing.T) {
	n := 0
	everyFloat(func(x []float32) {
		half, back := make([]uint16, len(x)), make([]float32, len(x))
		h := tensor.OverBF16(1, len(x), half)
		Combine(h, 1, tensor.OverF32(1, len(x), x), 0, tensor.Matrix{})
		Combine(tensor.OverF32(1, len(x), back), 1, h, 0, tensor.Matrix{})
		for i, v := range x {
			if half[i] != toBF16(v) {
				t.Fatalf("%v (%#x) is made %#x and not %#x", v, math.Float32bits(v), half[i], toBF16(v))
			}
			if math.Float32bits(back[i]) != uint32(half[i])<<16 {
				t.Fatalf("%#x is made %v", half[i], back[i])
			}
			n++
		}
	})
	if n < 400_000 {
		t.Errorf("%d numbers", n)
	}
}
