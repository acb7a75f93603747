package link

import "github.com/hopmesh/hopmesh/engine/nn"

var distMultDecoder = decoder{
	name: OfTriples,
	weights: func(width, relations int) []nn.Weight {
		if relations > 0 {
			// With weights of 1, an entity would score highest with itself under any relation, and
			// negatives hardly ever say that it is not.
			return []nn.Weight{{Name: "weight", Rows: relations, Cols: width, Initial: nn.Glorot(relations, width)}}
		}
		return []nn.Weight{{Name: "weight", Rows: 1, Cols: width, Initial: nn.Ones}}
	},
	equation: "s = the sum over columns of y * z * decoder.weight, where y and z are the embeddings of two vertices.",
	related:  "s = the sum over columns of y * z * decoder.weight[r], where y and z are the embeddings of head and tail, and r is the place of the relation among the dataset's.",
	new:      func(int) Decoder { return distMult{} },
	blocks:   newDistMultBlocks,
	beside:   func(int, int) int { return 0 },
}

// distMult is the inner product with a learnt weight for each column, a row of them for each
// relation (Yang et al., arXiv 1412.6575). Without relations it begins as dot. It knows no direction.
type distMult struct{}

// Score implements Decoder.
func (distMult) Score(w, a, b []float64, relation int) (sum float64) {
	n := len(a)
	w, b = w[relation*n:][:n], b[:n]
	for i, x := range a {
		sum += float64(x * b[i] * w[i])
	}
	return sum
}

// Back implements Decoder.
func (distMult) Back(dw, da, db, w, a, b []float64, relation int, slope float64) {
	n := len(a)
	w, dw = w[relation*n:][:n], dw[relation*n:][:n]
	for i := range a {
		dw[i] += float64(slope * a[i] * b[i])
		da[i] += float64(slope * b[i] * w[i])
		db[i] += float64(slope * a[i] * w[i])
	}
}
