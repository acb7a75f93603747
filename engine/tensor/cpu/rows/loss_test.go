package rows

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// How sure a row is of its label runs from hopeless to certain. Loss and gradient
// have to be right to the last digits of what they are, and not of 1. What a
// difference of logits loses by rounding is not theirs.
func TestCrossEntropyIsExactWhereItIsSure(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const exact = 1e-6
	for _, cols := range []int{1, 2, 7, 16, 47, 300} {
		for lead := -300.0; lead <= 300; lead += 7.5 {
			tolerance := exact + math.Abs(lead)*0x1p-24
			z, dz := make([]float32, cols), make([]float32, cols)
			for i := range z {
				z[i] = float32(r.NormFloat64())
			}
			label := r.IntN(cols)
			z[label] += float32(lead)
			loss, _ := CrossEntropy(tensor.OverF32(1, cols, dz), tensor.OverF32(1, cols, z), []int32{int32(label)}, 0.5, nil)
			most := math.Inf(-1)
			for _, v := range z {
				most = max(most, float64(v))
			}
			others, mine := 0.0, math.Exp(float64(z[label])-most)
			for i, v := range z {
				if i != label {
					others += math.Exp(float64(v) - most)
				}
			}
			want := math.Log1p(others)
			if float64(z[label]) < most {
				want = math.Log(others+mine) + most - float64(z[label])
			}
			if d := math.Abs(loss-want) / max(want, 0x1p-100); d > tolerance {
				t.Fatalf("%d columns, ahead by %v: the loss is %v and not %v", cols, lead, loss, want)
			}
			gradient := -0.5 * others / (others + mine)
			if d := math.Abs(float64(dz[label])-gradient) / max(-gradient, 0x1p-100); d > tolerance {
				t.Fatalf("%d columns, ahead by %v: the gradient is %v and not %v", cols, lead, dz[label], gradient)
			}
		}
	}
}

func TestLossesOfWhatIsNoNumber(t *testing.T) {
	nan := float32(math.NaN())
	for at := range 20 {
		z := make([]float32, 20)
		z[at] = nan
		for i, f := range []func(dz, z tensor.Matrix, labels []int32, scale float64, scratch []float32) (float64, int){CrossEntropy, BinaryCrossEntropy} {
			if loss, _ := f(tensor.Matrix{}, tensor.OverF32(1, 20, z), []int32{7}, 1, make([]float32, 20)); loss == loss {
				t.Errorf("loss %d of a row with NaN in column %d is %v", i, at, loss)
			}
		}
	}
}
