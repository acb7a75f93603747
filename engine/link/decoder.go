package link

import (
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Decoders are the names of the decoders. The first is that of recipes that name none.
var Decoders = []string{"dot"}

// A Decoder turns the embeddings of two vertices into the logit of an edge between them.
type Decoder interface {
	// Score returns the logit of the edge from a to b.
	Score(a, b []float64) float64
	// Back adds the gradient of the logit, times slope, to da and db.
	Back(da, db, a, b []float64, slope float64)
}

// NewDecoder returns the decoder of a name, which must be one of Decoders.
func NewDecoder(string) Decoder { return dot{} }

// dot is the inner product: it knows no direction.
type dot struct{}

// Score implements Decoder.
func (dot) Score(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// Back implements Decoder.
func (dot) Back(da, db, a, b []float64, slope float64) {
	for i := range a {
		da[i] += slope * b[i]
		db[i] += slope * a[i]
	}
}

// A Loss is the cross-entropy of the logits of pairs, in float64 on the processor. It keeps its
// memory.
type Loss struct {
	decoder   Decoder
	out, back []float64
}

// NewLoss returns the loss of a decoder's logits.
func NewLoss(d Decoder) *Loss { return &Loss{decoder: d} }

// Sum returns the sum of the losses of pairs of the rows of z, each weighed by what a pair and
// its negatives are, and sets dz, unless it is empty, to the gradient of that sum times scale.
// The words are those of Batch.Ends. dz may be z.
func (l *Loss) Sum(device tensor.Device, dz, z tensor.Matrix, words []int32, scale float64) (sum float64) {
	n := z.Rows * z.Cols
	l.out, l.back = slices.Grow(l.out[:0], n)[:n], slices.Grow(l.back[:0], n)[:n]
	device.Read(l.out, z)
	clear(l.back)
	pairs := 0 // without negatives
	for i := 0; i < len(words); i += WordsOfPair {
		pairs += int(words[i+2])
	}
	// A pair has as many negatives as any other, so all weigh the same.
	each := float64(pairs) / float64(max(1, len(words)/WordsOfPair))
	row := func(of []float64, i int32) []float64 { return of[int(i)*z.Cols:][:z.Cols] }
	for ; len(words) > 0; words = words[WordsOfPair:] {
		a, b := row(l.out, words[0]), row(l.out, words[1])
		loss, slope := CrossEntropy(l.decoder.Score(a, b), words[2] == 1)
		sum += loss * each
		l.decoder.Back(row(l.back, words[0]), row(l.back, words[1]), a, b, slope*each*scale)
	}
	if !dz.None() {
		device.Write(dz, l.back)
	}
	return sum
}

// CrossEntropy returns the loss of a logit, and its derivative.
func CrossEntropy(logit float64, edge bool) (loss, slope float64) {
	small := math.Exp(-math.Abs(logit)) // at most 1
	probability, target := 1/(1+small), 0.0
	if logit < 0 {
		probability = small / (1 + small)
	}
	if edge {
		target = 1
	}
	return math.Max(logit, 0) - logit*target + math.Log1p(small), probability - target
}
