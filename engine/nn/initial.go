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

// Initial returns the initial weights. Each matrix has its own key, so that none depends
// on the sizes of others. Large models take seconds: it checks ctx now and then, and
// returns its cause once it is done.
func (m *Model) Initial(ctx context.Context, seed uint64) ([]float64, error) {
	w := make([]float64, m.size)
	root := keyed.New(seed, keyed.Initial)
	for i, p := range m.params {
		draws, begin := root.With(uint64(i)).Draws(), m.initial[i]
		for j := range p.Rows * p.Cols {
			if j%initialLook == initialLook-1 && ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			w[p.Offset+j] = begin.Fill
			if begin.Bound > 0 {
				w[p.Offset+j] += begin.Bound * (2*draws.Float64() - 1)
			}
		}
	}
	return w, nil
}

// initialLook is the number of weights between two checks of the context: milliseconds.
const initialLook = 1 << 16
