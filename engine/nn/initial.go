package nn

import (
	"context"
	"math"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// Initial is what a weight is before training: Fill, and beside it something
// uniform between -Bound and Bound.
type Initial struct{ Fill, Bound float64 }

// Glorot is Glorot's and Bengio's uniform initialisation.
func Glorot(in, out int) Initial { return Initial{Bound: math.Sqrt(6 / float64(in+out))} }

// Fan is how PyTorch's Linear begins, weight and bias alike.
func Fan(in int) Initial { return Initial{Bound: 1 / math.Sqrt(float64(in))} }

// Zeros and Ones are what their names say.
var (
	Zeros = Initial{}
	Ones  = Initial{Fill: 1}
)

// Initial is the weights before training. Each matrix has a key of its own, so that
// none depends on the sizes of others. Those of a large model take seconds: it looks at ctx
// now and then, and its error is then the cause.
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

// initialLook is how many weights are made between two looks at the context: milliseconds.
const initialLook = 1 << 16
