package link

import "github.com/hopmesh/hopmesh/engine/nn"

var dotDecoder = decoder{
	name:     "dot",
	weights:  func(int, int) []nn.Weight { return nil },
	equation: "s = the sum over columns of y * z, where y and z are the embeddings of two vertices.",
	new:      func(int) Decoder { return dot{} },
	blocks:   newDotBlocks,
	beside:   func(int, int) int { return 0 },
}

// dot is the inner product: it knows neither direction nor relation.
type dot struct{}

// Score implements Decoder.
func (dot) Score(_, a, b []float64, _ int) (sum float64) {
	b = b[:len(a)]
	for i, x := range a {
		sum += float64(x * b[i]) // rounded, so that all processors come to the same
	}
	return sum
}

// Back implements Decoder.
func (dot) Back(_, da, db, _, a, b []float64, _ int, slope float64) {
	for i := range a {
		da[i] += float64(slope * b[i])
		db[i] += float64(slope * a[i])
	}
}
