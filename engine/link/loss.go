package link

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// The losses.
const (
	CrossEntropies = "bce"
	BPR            = "bpr"
	Margin         = "margin"
	Softmax        = "sampled_softmax"
)

// usualMargin is the margin of recipes that name none.
const usualMargin = 1

// A summand adds the loss of a pair, whose logit is the first, and its negatives, whose logits
// are the others, to sum, and sets slopes to its derivatives by the logits. A pair with its
// negatives weighs 1, so that gradients add up over any groups.
type summand func(sum float64, slopes, logits []float64, margin float64) float64

var summands = map[string]summand{
	CrossEntropies: func(sum float64, slopes, logits []float64, _ float64) float64 {
		each := 1 / float64(len(logits))
		for i, x := range logits {
			loss, slope := CrossEntropy(x, i == 0)
			sum += float64(loss * each)
			slopes[i] = slope * each
		}
		return sum
	},
	// Rendle et al., arXiv 1205.2618.
	BPR: func(sum float64, slopes, logits []float64, _ float64) float64 {
		return against(sum, slopes, logits, func(ahead float64) (loss, slope float64) { return CrossEntropy(ahead, true) })
	},
	Margin: func(sum float64, slopes, logits []float64, margin float64) float64 {
		return against(sum, slopes, logits, func(ahead float64) (loss, slope float64) {
			if ahead >= margin {
				return 0, 0
			}
			return margin - ahead, -1
		})
	},
	// Minus the logarithm of the probability that the pair has among its negatives.
	Softmax: func(sum float64, slopes, logits []float64, _ float64) float64 {
		most, all := slices.Max(logits), 0.0
		for i, x := range logits {
			slopes[i] = math.Exp(x - most)
			all += slopes[i]
		}
		for i := range slopes {
			slopes[i] /= all
		}
		slopes[0]--
		return sum + math.Log(all) + most - logits[0]
	},
}

// against adds the mean of a loss of how far the logit of a pair is ahead of each negative's.
func against(sum float64, slopes, logits []float64, of func(ahead float64) (loss, slope float64)) float64 {
	each := 1 / float64(max(1, len(logits)-1))
	slopes[0] = 0
	for i := 1; i < len(logits); i++ {
		loss, slope := of(logits[0] - logits[i])
		sum += float64(loss * each)
		slopes[i] = -slope * each
		slopes[0] += slope * each
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

// A Loss is that of the logits of pairs, in float64 on the processor. It keeps its memory.
type Loss struct {
	decoder Decoder
	of      summand
	margin  float64
	// weights are the decoder's, and gradients what theirs are added to; empty if it has none.
	weights, gradients tensor.Matrix

	out, back, w, dw, logits, slopes []float64
}

// NewLoss returns a loss, which must be one of those above, of what a recipe says of links and of
// embeddings of a width.
func NewLoss(s *Spec, loss string, width int) *Loss {
	return &Loss{decoder: NewDecoder(s.Decoder, width), of: summands[loss], margin: cmp.Or(s.Margin, usualMargin)}
}

// Attach sets where the decoder's weights are, and what their gradients are added to.
func (l *Loss) Attach(weights, gradients tensor.Matrix) { l.weights, l.gradients = weights, gradients }

// Sum returns the sum of the losses of pairs of the rows of z. Unless dz is empty, it sets dz to
// the gradient of that sum times scale, and adds that of the decoder's weights. The words are
// those of Batch.Ends. dz may be z.
func (l *Loss) Sum(device tensor.Device, dz, z tensor.Matrix, words []int32, scale float64) (sum float64) {
	n := z.Rows * z.Cols
	l.out, l.back = slices.Grow(l.out[:0], n)[:n], slices.Grow(l.back[:0], n)[:n]
	device.Read(l.out, z)
	clear(l.back)
	l.w = read(device, l.w, l.weights)
	back := !dz.None()
	if back {
		l.dw = read(device, l.dw, l.gradients)
	}
	row := func(of []float64, i int32) []float64 { return of[int(i)*z.Cols:][:z.Cols] }
	for len(words) > 0 {
		n := pairAnd(words)
		l.logits = l.logits[:0]
		for i := 0; i < n; i += WordsOfPair {
			l.logits = append(l.logits, l.decoder.Score(l.w, row(l.out, words[i]), row(l.out, words[i+1]), int(words[i+2]>>1)))
		}
		l.slopes = slices.Grow(l.slopes[:0], len(l.logits))[:len(l.logits)]
		sum = l.of(sum, l.slopes, l.logits, l.margin)
		for i := 0; back && i < n; i += WordsOfPair {
			if slope := l.slopes[i/WordsOfPair]; slope != 0 {
				l.decoder.Back(l.dw, row(l.back, words[i]), row(l.back, words[i+1]), l.w, row(l.out, words[i]), row(l.out, words[i+1]), int(words[i+2]>>1), slope*scale)
			}
		}
		words = words[n:]
	}
	if back {
		device.Write(dz, l.back)
		if len(l.dw) > 0 {
			device.Write(l.gradients, l.dw)
		}
	}
	return sum
}

// pairAnd returns how many words the first pair and its negatives are.
func pairAnd(words []int32) (n int) {
	for n = WordsOfPair; n < len(words) && words[n+2]&yes == 0; n += WordsOfPair {
	}
	return n
}

// read reads a row of numbers, of which there may be none.
func read(device tensor.Device, to []float64, row tensor.Matrix) []float64 {
	if to = slices.Grow(to[:0], row.Cols)[:row.Cols]; len(to) > 0 {
		device.Read(to, row)
	}
	return to
}
