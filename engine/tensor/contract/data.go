package contract

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// ragged are sizes around those that kernels are made for.
var ragged = []int{1, 2, 3, 7, 15, 16, 17, 31, 33, 47, 63, 64, 65, 100, 128, 130, 257}

func (b *bench) below(n int) int { return int(b.draws.Below(uint64(n))) }

func (b *bench) coin() bool { return b.below(2) == 0 }

// size is a ragged one, or, rarely, 0.
func (b *bench) size() int {
	if b.below(16) == 0 {
		return 0
	}
	return ragged[b.below(len(ragged))]
}

// full is a size that is not 0.
func (b *bench) full() int { return ragged[b.below(len(ragged))] }

// numbers are between -1 and 1, some of them 0. BF16 can hold them, so that all
// devices have the same in any type.
func (b *bench) numbers(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		if b.below(16) > 0 {
			x[i] = float64(b.below(511)-255) / 256
		}
	}
	return x
}

// fine are numbers that fill the 24 bits of an F32.
func (b *bench) fine(n int) []float64 {
	x := b.numbers(n)
	for i := range x {
		if x[i] != 0 {
			x[i] = float64(float32(2*b.draws.Float64() - 1))
		}
	}
	return x
}

// wild are numbers of all magnitudes up to this one, and tiny ones that have lost
// their leading bit.
func (b *bench) wild(n int, most float64) []float64 {
	x := b.fine(n)
	for i := range x {
		switch b.below(8) {
		case 0:
			x[i] *= 1e-40
		case 1, 2:
			x[i] *= most
		case 3:
			x[i] *= math.Pow(most, b.draws.Float64())
		}
		x[i] = float64(float32(x[i]))
	}
	return x
}

// vertices are distinct, of all sizes and in no order.
func (b *bench) vertices(n int) []uint32 {
	v := make([]uint32, n)
	base := uint32(b.draws.Next())
	for i := range v {
		v[i] = base ^ uint32(i)*0x9e3779b1
	}
	return v
}

func (b *bench) dropout(p float32, rows int) tensor.Dropout {
	if p == 0 {
		return tensor.Dropout{}
	}
	return tensor.Dropout{P: p, Key: keyed.Key(b.draws.Next()), Vertices: b.vertices(rows)}
}

// An ending is an epilogue on all sides.
type ending struct {
	bias       *operand
	activation tensor.Activation
	dropout    tensor.Dropout
}

// A recipe is an ending without its operands.
type recipe struct {
	bias       bool
	activation tensor.Activation
	p          float32
}

// recipes are all combinations.
func recipes() []recipe {
	var rs []recipe
	for _, bias := range []bool{false, true} {
		for _, a := range []tensor.Activation{tensor.Linear, tensor.ReLU, tensor.ELU} {
			for _, p := range []float32{0, .3} {
				rs = append(rs, recipe{bias, a, p})
			}
		}
	}
	return rs
}

func (b *bench) recipe() recipe {
	rs := recipes()
	return rs[b.below(len(rs))]
}

func (r recipe) String() string {
	return fmt.Sprintf("bias %v, %s, dropout %v", r.bias, [...]string{"linear", "relu", "elu"}[r.activation], r.p)
}

// ending makes the operands of a recipe for an output of this shape.
func (b *bench) ending(r recipe, rows, cols int) *ending {
	e := &ending{activation: r.activation, dropout: b.dropout(r.p, rows)}
	if r.bias {
		e.bias = b.in("bias", b.native(), 1, cols, b.fine(cols))
	}
	return e
}

// slack is how large a term is that an ending brings: ELU subtracts 1.
func (e *ending) slack() float64 {
	if e.activation == tensor.ELU {
		return 1 / (1 - float64(e.dropout.P))
	}
	return 0
}

// epilogue is this side's. Magnitudes are not cut off.
func (s side) epilogue(e *ending) *tensor.Epilogue {
	if e.bias == nil && e.activation == tensor.Linear && e.dropout.P == 0 {
		return nil
	}
	p := &tensor.Epilogue{Bias: s.of(e.bias), Activation: e.activation, Dropout: e.dropout}
	if s.at == magnitudes {
		p.Activation = tensor.Linear
	}
	return p
}
