package rows

import (
	"math"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// normEpsilon is added to the variance.
const normEpsilon = 1e-5

// normBlock is the number of elements normalised before e is applied to them.
const normBlock = 4 << 10

// LayerNorm normalises n rows of x from row first, and applies e while they are in
// the cache.
func LayerNorm(y, stats, x, gamma, beta tensor.Matrix, first, n int, e *tensor.Epilogue) {
	if y.Cols == 0 {
		return
	}
	g, b := row(gamma, 0), row(beta, 0)
	block := max(1, normBlock/y.Cols)
	for end := first + n; first < end; first += block {
		n := min(block, end-first)
		for r := first; r < first+n; r++ {
			normRow(row(y, r), row(x, r), g, b, row(stats, r))
		}
		Finish(y, first, n, e)
	}
}

// normRow normalises a row; s is set to its mean and 1/deviation.
func normRow(y, x, gamma, beta, s []float32) {
	if kernels.norm != nil {
		kernels.norm(&y[0], &x[0], &gamma[0], &beta[0], &s[0], len(y), normEpsilon)
		return
	}
	mean := sumRow(x) / float32(len(x))
	inverse := float32(1 / math.Sqrt(float64(squaresRow(x, mean))/float64(len(x))+normEpsilon))
	s[0], s[1] = mean, inverse
	for i, v := range x {
		y[i] = (v-mean)*inverse*gamma[i] + beta[i]
	}
}

// LayerNormBack computes the gradient of LayerNorm for n rows from row first. It adds to
// dgamma and dbeta, which have one element per column.
func LayerNormBack(dx tensor.Matrix, dgamma, dbeta []float32, dy, x, stats, gamma tensor.Matrix, first, n int) {
	if dx.Cols == 0 {
		return
	}
	g := row(gamma, 0)
	for r := first; r < first+n; r++ {
		s := row(stats, r)
		normBackRow(row(dx, r), dgamma, dbeta, row(dy, r), row(x, r), g, s[0], s[1])
	}
}

func sumRow(x []float32) float32 {
	if kernels.sum != nil {
		return kernels.sum(unsafe.SliceData(x), len(x))
	}
	var lanes [16]float32
	for len(x) >= 16 {
		for i, v := range x[:16] {
			lanes[i] += v
		}
		x = x[16:]
	}
	for i, v := range x {
		lanes[i] += v
	}
	return tree(&lanes)
}

// tree adds sixteen lanes in the order that every implementation uses.
func tree(l *[16]float32) float32 {
	for half := 8; half > 0; half /= 2 {
		for i := range half {
			l[i] += l[i+half]
		}
	}
	return l[0]
}

// squaresRow returns the sum of (x-mean)^2.
func squaresRow(x []float32, mean float32) float32 {
	var lanes [16]float32
	for i, v := range x {
		lanes[i&15] += (v - mean) * (v - mean)
	}
	return tree(&lanes)
}

func normBackRow(dx, dgamma, dbeta, dy, x, gamma []float32, mean, inverse float32) {
	if kernels.normBack != nil {
		kernels.normBack(&dx[0], &dgamma[0], &dbeta[0], &dy[0], &x[0], &gamma[0], len(dx), mean, inverse)
		return
	}
	var sums, products [16]float32
	for i, v := range x {
		h := (v - mean) * inverse
		dgamma[i] += dy[i] * h
		dbeta[i] += dy[i]
		t := dy[i] * gamma[i]
		sums[i&15] += t
		products[i&15] += t * h
	}
	s, p := tree(&sums)/float32(len(x)), tree(&products)/float32(len(x))
	for i, v := range x {
		h := (v - mean) * inverse
		dx[i] = (dy[i]*gamma[i] - s - h*p) * inverse
	}
}
