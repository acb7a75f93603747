package link

import "github.com/hopmesh/hopmesh/engine/nn"

var mlpDecoder = decoder{
	name: "mlp",
	weights: func(width, _ int) []nn.Weight {
		return []nn.Weight{
			{Name: "0.weight", Rows: width, Cols: width, Initial: nn.Fan(width)},
			{Name: "0.bias", Rows: 1, Cols: width, Initial: nn.Fan(width)},
			{Name: "1.weight", Rows: width, Cols: 1, Initial: nn.Fan(width)},
			{Name: "1.bias", Rows: 1, Cols: 1, Initial: nn.Fan(width)},
		}
	},
	equation: "s = max(0, (y * z) @ decoder.0.weight + decoder.0.bias) @ decoder.1.weight + decoder.1.bias, where y * z multiplies the embeddings of two vertices column by column.",
	new: func(width int) Decoder {
		all := make([]float64, 3*width)
		return &mlp{product: all[:width], hidden: all[width:][:width], back: all[2*width:]}
	},
	blocks: newMLPBlocks,
	beside: mlpBeside,
}

// mlp is a perceptron of two layers, the hidden one as wide as the embeddings, on their product
// column by column. It knows neither direction nor relation.
type mlp struct{ product, hidden, back []float64 }

// parts returns the matrices of a row of its weights.
func (m *mlp) parts(w []float64) (first, bias, second, last []float64) {
	n := len(m.hidden)
	return w[:n*n], w[n*n:][:n], w[n*n+n:][:n], w[n*n+2*n:][:1]
}

// enter sets product and hidden, before the activation.
func (m *mlp) enter(w, a, b []float64) {
	first, bias, _, _ := m.parts(w)
	copy(m.hidden, bias)
	for i := range m.product {
		m.product[i] = a[i] * b[i]
	}
	n, i := len(m.hidden), 0
	for ; i+4 <= n; i += 4 { // in the same order as one row after the other
		x := m.product[i:][:4]
		w, w1, w2, w3 := first[i*n:][:n], first[(i+1)*n:][:n], first[(i+2)*n:][:n], first[(i+3)*n:][:n]
		for j := range m.hidden {
			m.hidden[j] = m.hidden[j] + float64(x[0]*w[j]) + float64(x[1]*w1[j]) + float64(x[2]*w2[j]) + float64(x[3]*w3[j])
		}
	}
	for ; i < n; i++ {
		addTo(m.hidden, first[i*n:], m.product[i])
	}
}

// addTo adds x times a row to to.
func addTo(to, row []float64, x float64) {
	row = row[:len(to)]
	for j, y := range row {
		to[j] += float64(x * y)
	}
}

// Score implements Decoder.
func (m *mlp) Score(w, a, b []float64, _ int) float64 {
	m.enter(w, a, b)
	_, _, second, last := m.parts(w)
	sum := last[0]
	for j, h := range m.hidden {
		sum += float64(max(0, h) * second[j])
	}
	return sum
}

// Back implements Decoder.
func (m *mlp) Back(dw, da, db, w, a, b []float64, _ int, slope float64) {
	m.enter(w, a, b)
	first, _, second, _ := m.parts(w)
	dFirst, dBias, dSecond, dLast := m.parts(dw)
	dLast[0] += slope
	for j, h := range m.hidden {
		if m.back[j] = 0; h > 0 {
			dSecond[j] += float64(slope * h)
			m.back[j] = slope * second[j]
		}
		dBias[j] += m.back[j]
	}
	n := len(m.hidden)
	for i, x := range m.product {
		row, sum := first[i*n:][:n], 0.0
		for j, y := range m.back {
			sum += float64(y * row[j])
		}
		addTo(dFirst[i*n:][:n], m.back, x)
		da[i] += float64(sum * b[i])
		db[i] += float64(sum * a[i])
	}
}
