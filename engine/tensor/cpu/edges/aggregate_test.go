package edges

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

func TestAggregate(t *testing.T) {
	// The last has more than the second cache holds, and is fetched ahead.
	tried := append(shapes, shape{rows: 50, cols: 2500, degree: 6})
	with(t, func(t *testing.T, e *Edges, rng *rand.Rand) {
		for _, s := range tried {
			g := s.graph(rng)
			for i, width := range widths(rng) {
				what := fmt.Sprintf("%s, width %d, %d", s, width, i%24)
				how := tensor.Aggregation(i % 2)
				add := i%4 > 1
				types := []tensor.Type{tensor.F32, tensor.F32, tensor.BF16}
				x := random(rng, types[i%3], g.Cols, width)
				y := random(rng, tensor.F32, g.Rows, width)
				var values *framed
				var given, wide tensor.Matrix
				if i%5 == 4 {
					values = random(rng, tensor.F32, 1, g.Entries())
					given, wide = values.Matrix, values.wide()
				}
				epilogue, wideEpilogue := epilogues(rng, i%8 == 7, g.Rows, width)
				want := y.wide()
				judge.Aggregate(want, g, wide, x.wide(), how, add, wideEpilogue)
				e.Aggregate(y.Matrix, g, given, x.Matrix, how, add, epilogue)
				y.equals(t, what, want, float64(2*s.degree+4*s.hub))

				dx, dy := random(rng, tensor.F32, g.Cols, width), random(rng, tensor.F32, g.Rows, width)
				want = dx.wide()
				judge.AggregateBack(want, g, wide, dy.wide(), how, add)
				e.AggregateBack(dx.Matrix, g, given, dy.Matrix, how, add)
				dx.equals(t, "back: "+what, want, float64(2*s.degree+4*s.hub))
			}
		}
	})
}

// epilogues is one, or none, as it is and in float64.
func epilogues(rng *rand.Rand, some bool, rows, width int) (narrow, wide *tensor.Epilogue) {
	if !some {
		return []*tensor.Epilogue{nil, {}}[rng.IntN(2)], nil
	}
	vertices := make([]uint32, rows)
	for i := range vertices {
		vertices[i] = rng.Uint32()
	}
	bias := random(rng, tensor.F32, 1, width)
	drop := tensor.Dropout{P: 0.3, Key: keyed.New(1, keyed.Dropout), Vertices: vertices}
	return &tensor.Epilogue{Bias: bias.Matrix, Activation: tensor.ELU, Dropout: drop},
		&tensor.Epilogue{Bias: bias.wide(), Activation: tensor.ELU, Dropout: drop}
}

func TestAggregateMax(t *testing.T) {
	with(t, func(t *testing.T, e *Edges, rng *rand.Rand) {
		for _, s := range shapes {
			g := s.graph(rng)
			for i, width := range widths(rng) {
				what := fmt.Sprintf("%s, width %d", s, width)
				x := random(rng, tensor.F32, g.Cols, width)
				if i%2 == 0 { // equal ones
					x.each(func(_, _, at int) { x.whole[at] = float32(int(x.whole[at])) })
				}
				y, which := frame(rng, tensor.F32, g.Rows, width), frame(rng, tensor.I32, g.Rows, width)
				want, wantWhich := y.wide(), which.wide()
				judge.AggregateMax(want, wantWhich, g, x.wide())
				e.AggregateMax(y.Matrix, which.Matrix, g, x.Matrix)
				y.equals(t, what, want, 0)
				which.equals(t, what, wantWhich, 0)

				dx, dy := random(rng, tensor.F32, g.Cols, width), random(rng, tensor.F32, g.Rows, width)
				want = dx.wide()
				judge.AggregateMaxBack(want, g, dy.wide(), wantWhich, i%3 == 0)
				e.AggregateMaxBack(dx.Matrix, g, dy.Matrix, which.Matrix, i%3 == 0)
				dx.equals(t, "back: "+what, want, float64(2*s.degree+4*s.hub))
			}
		}
	})
}

// Numbers that are none, or infinite, neither crash a maximum nor choose what is not
// there.
func TestAggregateMaxOfNoNumbers(t *testing.T) {
	with(t, func(t *testing.T, e *Edges, rng *rand.Rand) {
		g := shape{rows: 40, cols: 30, degree: 4}.graph(rng)
		x := random(rng, tensor.F32, g.Cols, 37)
		x.each(func(_, _, at int) {
			switch rng.IntN(3) {
			case 0:
				x.whole[at] = float32(math.NaN())
			case 1:
				x.whole[at] = float32(math.Inf(-1))
			}
		})
		y, which := frame(rng, tensor.F32, g.Rows, 37), frame(rng, tensor.I32, g.Rows, 37)
		want, chosen := y.wide(), which.wide()
		judge.AggregateMax(want, chosen, g, x.wide())
		e.AggregateMax(y.Matrix, which.Matrix, g, x.Matrix)
		y.equals(t, "y", want, 0)
		which.equals(t, "which", chosen, 0)
	})
}
