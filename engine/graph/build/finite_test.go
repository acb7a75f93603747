package build

import (
	"math"
	"math/rand/v2"
	"testing"

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
			if finiteBytes(raw(values), graph.F32) != want || finiteBytes(raw(short), graph.BF16) != want {
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
