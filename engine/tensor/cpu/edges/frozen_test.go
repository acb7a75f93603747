package edges

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
)

// frozen is the digest of the sums below.
const frozen = 0x3b4ea22e9e6ff35c

// exact is a matrix of numbers that are the same on every machine.
func exact(rng *rand.Rand, t tensor.Type, rows, cols int) *framed {
	f := frame(rng, t, rows, cols)
	f.each(func(_, _, at int) {
		v := float32(int32(rng.Uint32())) / (1 << 30)
		if t == tensor.BF16 {
			f.halves[at] = uint16(math.Float32bits(v) >> 16)
		} else {
			f.whole[at] = v
		}
	})
	return f
}

// TestFrozenBits holds that all families with assembly give the same bits, whatever
// machines they need: of sums, means and weighted sums, there and back, of numbers
// and BF16, and of weights by heads.
func TestFrozenBits(t *testing.T) {
	for _, f := range families() {
		if f == family.Generic {
			continue
		}
		e := edgesOn(t, f, 2)
		rng := rand.New(rand.NewPCG(7, 8))
		digest := fnv.New64a()
		keep := func(fs ...*framed) {
			for _, f := range fs {
				for _, word := range f.bits() {
					digest.Write(binary.LittleEndian.AppendUint32(nil, word))
				}
			}
		}
		g := shape{rows: 190, cols: 210, degree: 7, hub: 20000}.graph(rng)
		for i, width := range []int{1, 2, 3, 4, 5, 7, 8, 9, 31, 47, 63, 64, 65, 100, 129, 256, 602} {
			how, add := tensor.Aggregation(i%2), i%4 > 1
			values := exact(rng, tensor.F32, 1, g.Entries())
			for _, v := range []tensor.Matrix{{}, values.Matrix} {
				for _, of := range []tensor.Type{tensor.F32, tensor.BF16} {
					y, dx := exact(rng, tensor.F32, g.Rows, width), exact(rng, tensor.F32, g.Cols, width)
					e.Aggregate(y.Matrix, g, v, exact(rng, of, g.Cols, width).Matrix, how, add, nil)
					e.AggregateBack(dx.Matrix, g, v, y.Matrix, how, !add)
					keep(y, dx)
				}
			}
			heads := 1 + i%5
			dx, da := exact(rng, tensor.F32, 90, width*heads), exact(rng, tensor.F32, 1, width*heads)
			x, a, dy := exact(rng, tensor.F32, 90, width*heads), exact(rng, tensor.F32, 1, width*heads), exact(rng, tensor.F32, 90, heads)
			e.HeadDotBack(dx.Matrix, da.Matrix, dy.Matrix, x.Matrix, a.Matrix)
			keep(dx, da)
		}
		if digest.Sum64() != frozen {
			t.Errorf("%s: the digest is %#x and not %#x", f, digest.Sum64(), uint64(frozen))
		}
	}
}
