package gemm

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
)

// frozen are the digests of the products below, NN, TN and NT.
var frozen = [3]uint64{0xe07bc919b4e46c30, 0xb345536d6bb3653, 0x8301737262ae4276}

// exact fills a matrix with numbers that are the same on every machine.
func exact(r *rand.Rand, m tensor.Matrix) {
	for i := range m.Rows {
		for j := range m.Cols {
			*at(m, i, j) = float32(int32(r.Uint32())) / (1 << 30)
		}
	}
}

// TestFrozenBits holds that all families with assembly give the same bits, whatever
// machines they need.
func TestFrozenBits(t *testing.T) {
	for _, f := range families() {
		if f == family.Generic {
			continue
		}
		g := on(t, f, 2)
		for i, shape := range []tensor.Shape{tensor.NN, tensor.TN, tensor.NT} {
			r, numbers := rand.New(rand.NewPCG(23, 24)), rand.New(rand.NewPCG(25, 26))
			digest := fnv.New64a()
			for _, s := range bits {
				c, a, b := operands(r, shape, s[0], s[1], s[2])
				exact(numbers, a.Matrix)
				exact(numbers, b.Matrix)
				exact(numbers, c.Matrix)
				for _, add := range []bool{true, false} {
					g.MatMul(c.Matrix, a.Matrix, b.Matrix, shape, add, nil)
					for row := range c.Rows {
						for column := range c.Cols {
							word := math.Float32bits(*at(c.Matrix, row, column))
							digest.Write(binary.LittleEndian.AppendUint32(nil, word))
						}
					}
				}
			}
			if digest.Sum64() != frozen[i] {
				t.Errorf("%s %s: the digest is %#x and not %#x", f, shapes[shape], digest.Sum64(), frozen[i])
			}
		}
	}
}
