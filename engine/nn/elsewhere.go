package nn

import "github.com/hopmesh/hopmesh/engine/tensor"

// Program is the model of jobs whose steps are computed by a program beside each node. It
// says how many hops a batch has, and has one weight, which stays 0. Nothing computes it.
const Program = "program"

// elsewhere is a layer of such a model.
type elsewhere struct{ first bool }

func newElsewhere(_ Spec, p Place) Conv { return elsewhere{first: p.Layer == 0} }

func (l elsewhere) Weights() []Weight {
	if !l.first {
		return nil
	}
	return []Weight{{"placeholder", 1, 1, Zeros}}
}

const notHere = "nn: the model of a program is computed by that program"

func (elsewhere) Forward(*Call, tensor.Matrix, *tensor.Epilogue) { panic(notHere) }
func (elsewhere) Backward(*Call, tensor.Matrix, tensor.Matrix)   { panic(notHere) }
