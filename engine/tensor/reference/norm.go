package reference

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// LayerNorm implements tensor.Rows. The variance is the mean of the squares of the
// differences from the mean.
func (*Device) LayerNorm(y, stats, x, gamma, beta tensor.Matrix, e *tensor.Epilogue) {
	mustBe("y", y, x.Rows, x.Cols)
	mustBe("stats", stats, x.Rows, 2)
	mustBe("gamma", gamma, 1, x.Cols)
	mustBe("beta", beta, 1, x.Cols)
	must(e == nil || e.Bias.None(), "LayerNorm with a bias")
	from, scale, shift := read(x), read(gamma).row(0), read(beta).row(0)
	n := float64(x.Cols)
	for i := range x.Rows {
		in, to := from.row(i), row(y, i)
		mean, variance := 0.0, 0.0
		for _, v := range in {
			mean += v / n
		}
		for _, v := range in {
			variance += (v - mean) * (v - mean) / n
		}
		inverse := 1 / math.Sqrt(variance+1e-5)
		row(stats, i)[0], row(stats, i)[1] = mean, inverse
		for j, v := range in {
			to[j] = (v-mean)*inverse*scale[j] + shift[j]
		}
		finish(to, i, e)
	}
}

// LayerNormBack implements tensor.Rows.
func (*Device) LayerNormBack(dx, dgamma, dbeta, dy, x, stats, gamma tensor.Matrix) {
	mustBe("dx", dx, x.Rows, x.Cols)
	mustBe("dy", dy, x.Rows, x.Cols)
	mustBe("stats", stats, x.Rows, 2)
	mustBe("gamma", gamma, 1, x.Cols)
	mustBe("dgamma", dgamma, 1, x.Cols)
	mustBe("dbeta", dbeta, 1, x.Cols)
	from, grad, kept, scale := read(x), read(dy), read(stats), read(gamma).row(0)
	n := float64(x.Cols)
	for i := range x.Rows {
		in, g, to := from.row(i), grad.row(i), row(dx, i)
		mean, inverse := kept.row(i)[0], kept.row(i)[1]
		sum, along := 0.0, 0.0 // of the normalised row's gradients, and of their products with the row
		for j := range in {
			normal := (in[j] - mean) * inverse
			row(dgamma, 0)[j] += g[j] * normal
			row(dbeta, 0)[j] += g[j]
			sum += g[j] * scale[j]
			along += g[j] * scale[j] * normal
		}
		for j := range in {
			normal := (in[j] - mean) * inverse
			to[j] = inverse * (g[j]*scale[j] - sum/n - normal*along/n)
		}
	}
}
