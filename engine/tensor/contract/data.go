package contract

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// ragged are sizes around those that kernels are optimised for.
var ragged = []int{1, 2, 3, 7, 15, 16, 17, 31, 33, 47, 63, 64, 65, 100, 128, 130, 257}

func (b *bench) below(n int) int { return int(b.draws.Below(uint64(n))) }

func (b *bench) coin() bool { return b.below(2) == 0 }

// size returns a ragged size or, rarely, 0.
func (b *bench) size() int {
	if b.below(16) == 0 {
		return 0
	}
	return ragged[b.below(len(ragged))]
}

// full returns a size other than 0.
func (b *bench) full() int { return ragged[b.below(len(ragged))] }

// numbers returns numbers between -1 and 1, some of them 0. BF16 can represent them, so
// that all devices hold the same in any type.
func (b *bench) numbers(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		if b.below(16) > 0 {
			x[i] = float64(b.below(511)-255) / 256
		}
	}
	return x
}

// fine returns numbers that use all 24 bits of an F32.
func (b *bench) fine(n int) []float64 {
	x := b.numbers(n)
	for i := range x {
		if x[i] != 0 {
			x[i] = float64(float32(2*b.draws.Float64() - 1))
		}
	}
	return x
}

// wild returns numbers of all magnitudes up to most, and subnormal ones.
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

// vertices returns distinct vertices of all sizes, in random order.
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

// recipes returns all combinations.
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

// ending creates the operands of a recipe for an output of this shape.
func (b *bench) ending(r recipe, rows, cols int) *ending {
	e := &ending{activation: r.activation, dropout: b.dropout(r.p, rows)}
	if r.bias {
		e.bias = b.in("bias", b.native(), 1, cols, b.fine(cols))
	}
	return e
}

// slack returns the magnitude of a term that an ending adds: ELU subtracts 1.
func (e *ending) slack() float64 {
	if e.activation == tensor.ELU {
		return 1 / (1 - float64(e.dropout.P))
	}
	return 0
}

// epilogue returns this side's epilogue. Magnitudes are not cut off at 0.
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
