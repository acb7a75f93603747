package rows

import (
	"math"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// An AdamRule holds the precomputed constants of a tensor.AdamStep. Kernels rely on the
// order of the fields.
type AdamRule struct {
	Beta1, Rest1, Beta2, Rest2 float32
	Rate                       float32 // with the bias correction of the first moment
	Root                       float32 // the bias correction of the second moment's root
	Epsilon                    float32
	Decay                      float32 // added to the gradient
	Keep                       float32 // factor of the weight
}

// NewAdamRule computes the rule of a step.
func NewAdamRule(o tensor.AdamStep) AdamRule {
	t := float64(o.Step)
	r := AdamRule{
		Beta1: float32(o.Beta1), Rest1: float32(1 - o.Beta1),
		Beta2: float32(o.Beta2), Rest2: float32(1 - o.Beta2),
		Rate:    float32(o.Rate / (1 - math.Pow(o.Beta1, t))),
		Root:    float32(1 / math.Sqrt(1-math.Pow(o.Beta2, t))),
		Epsilon: float32(o.Epsilon),
		Keep:    1,
	}
	if o.Decoupled {
		r.Keep = float32(1 - o.Rate*o.Decay)
	} else {
		r.Decay = float32(o.Decay)
	}
	return r
}

// Adam updates weights from their gradients.
func Adam(w, g, m, v []float32, o *AdamRule) {
	if kernels.adam != nil {
		kernels.adam(unsafe.SliceData(w), unsafe.SliceData(g[:len(w)]), unsafe.SliceData(m[:len(w)]), unsafe.SliceData(v[:len(w)]), &o.Beta1, len(w))
		return
	}
	for i, x := range w {
		d := g[i] + o.Decay*x
		m[i] = o.Beta1*m[i] + o.Rest1*d
		v[i] = o.Beta2*v[i] + o.Rest2*(d*d)
		root := float32(math.Sqrt(float64(v[i])))
		w[i] = x*o.Keep - o.Rate*m[i]/(root*o.Root+o.Epsilon)
	}
}

// SGD updates weights from their gradients. m may be nil without momentum; its old values
// are then ignored.
func SGD(w, g, m []float32, rate, momentum, decay float32) {
	if momentum == 0 && m != nil {
		clear(m)
	}
	if k := kernels.sgd[is(m != nil)]; k != nil {
		k(unsafe.SliceData(w), unsafe.SliceData(g[:len(w)]), unsafe.SliceData(m), len(w), rate, momentum, decay)
		return
	}
	for i, x := range w {
		d := g[i] + decay*x
		if m != nil {
			d += momentum * m[i]
			m[i] = d
		}
		w[i] = x - rate*d
	}
}
