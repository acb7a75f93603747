package wire

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// One number that is not finite is found wherever it is, and no others.
func TestFiniteBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 9 {
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(r.NormFloat64()) * 1e38 * float32(r.IntN(3))
			if values[i]-values[i] != 0 {
				values[i] = math.MaxFloat32
			}
		}
		short := make([]uint16, n)
		graph.ToBF16(short, values)
		for i := range short {
			if short[i]&0x7f80 == 0x7f80 {
				short[i] = 0xff7f // the least that there is
			}
		}
		check := func(want bool) {
			t.Helper()
			long := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*n)
			half := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(short))), 2*n)
			if FiniteBytes(long, false) != want || FiniteBytes(half, true) != want {
				t.Errorf("%v, %x: want %v", values, short, want)
			}
		}
		check(true)
		for i := range values {
			for _, wrong := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
				v, s := values[i], short[i]
				values[i] = float32(wrong)
				short[i] = uint16(math.Float32bits(values[i]) >> 16)
				check(false)
				values[i], short[i] = v, s
			}
		}
	}
}

func TestElements(t *testing.T) {
	b := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}
	for at := range 5 {
		if got, err := Elements[uint32](b[at : at+4]); err != nil || len(got) != 1 || got[0] != uint32(at)*0x01010101+0x04030201 {
			t.Errorf("at %d: %x, %v", at, got, err)
		}
	}
	if _, err := Elements[uint32](b[:6]); err == nil {
		t.Error("one and a half")
	}
}
