package nn

import (
	"context"
	"math"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// Initial is the distribution of an initial weight: Fill plus a uniform number between
// -Bound and Bound.
type Initial struct{ Fill, Bound float64 }

// Glorot returns the uniform initialisation of Glorot and Bengio.
func Glorot(in, out int) Initial { return Initial{Bound: math.Sqrt(6 / float64(in+out))} }

// Fan returns the initialisation of PyTorch's Linear, for weight and bias alike.
func Fan(in int) Initial { return Initial{Bound: 1 / math.Sqrt(float64(in))} }

// Zeros and Ones initialise all elements to 0 or 1.
var (
	Zeros = Initial{}
	Ones  = Initial{Fill: 1}
)

// Initial returns the initial weights; see Draw.
func (m *Model) Initial(ctx context.Context, seed uint64) ([]float64, error) {
	w := make([]float64, m.size)
	if err := m.Draw(ctx, seed, func(first int, some []float64) { copy(w[first:], some) }); err != nil {
		return nil, err
	}
	return w, nil
}

// Draw passes the initial weights on, some at a time, with the place of the first of them.
// Each matrix has its own key, so that none depends on the sizes of others. Large models take
// seconds: it checks ctx now and then, and returns its cause once it is done.
func (m *Model) Draw(ctx context.Context, seed uint64, to func(first int, some []float64)) error {
	some := make([]float64, min(m.size, initialLook))
	root := keyed.New(seed, keyed.Initial)
	for i, p := range m.params {
		draws, begin := root.With(uint64(i)).Draws(), m.initial[i]
		for first := 0; first < p.Rows*p.Cols; first += initialLook {
			some := some[:min(len(some), p.Rows*p.Cols-first)]
			for j := range some {
				some[j] = begin.Fill
				if begin.Bound > 0 {
					some[j] += begin.Bound * (2*draws.Float64() - 1)
				}
			}
			if len(some) == initialLook && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			to(p.Offset+first, some)
		}
	}
	return nil
}

// initialLook is how many weights are drawn between two checks of the context: milliseconds.
const initialLook = 1 << 16
