package link

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// Row 4 is in no pair, row 0 in several, and one pair is of a vertex and itself. Pairs have two
// negatives each.
var someWords = []int32{0, 1, 1, 0, 2, 0, 0, 3, 0, 2, 0, 1, 2, 2, 0, 2, 3, 0}

// tripleWords are the same with relations: the last two triples have another one.
var tripleWords = []int32{0, 1, 5, 0, 2, 4, 0, 3, 4, 0, 2, 3, 1, 2, 2, 2, 2, 2, 3, 3, 3, 0, 3, 2, 3, 1, 2}

// lossOf returns a function of the rows that someWords speak of and of a decoder's weights: the
// sum of losses and, times scale, its gradient by all of them, which is what begin is added to.
func lossOf(t *testing.T, s *Spec, of string, columns int) (f func(x []float64, scale, begin float64) (sum float64, gradient []float64), size int) {
	t.Helper()
	const rows = 5
	d := reference.New()
	arena, err := d.NewArena(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { arena.Close() })
	known, err := named(s.Decoder)
	if err != nil {
		t.Fatal(err)
	}
	weights := 0
	for _, w := range known.weights(columns, s.Relations) {
		weights += w.Rows * w.Cols
	}
	z, dz := arena.Alloc(d.Type(), rows, columns), arena.Alloc(d.Type(), rows, columns)
	var w, dw tensor.Matrix
	if weights > 0 {
		w, dw = arena.Alloc(d.Type(), 1, weights), arena.Alloc(d.Type(), 1, weights)
	}
	loss := NewLoss(s, of, columns)
	loss.Attach(w, dw)
	words := someWords
	if s.Relations > 0 {
		words = tripleWords
	}
	return func(x []float64, scale, begin float64) (float64, []float64) {
		gradient := slices.Repeat([]float64{begin}, len(x))
		d.Write(z, x[:rows*columns])
		if weights > 0 {
			d.Write(w, x[rows*columns:])
			d.Write(dw, gradient[rows*columns:])
		}
		without := loss.Sum(d, tensor.Matrix{}, z, words, scale)
		sum := loss.Sum(d, dz, z, words, scale)
		if sum != without {
			t.Errorf("a loss of %g without a gradient, and %g with one", without, sum)
		}
		d.Read(gradient[:rows*columns], dz)
		if weights > 0 {
			d.Read(gradient[rows*columns:], dw)
		}
		return sum, gradient
	}, rows*columns + weights
}

// The gradients of rows and of a decoder's weights are finite differences, by each decoder and
// each loss.
func TestGradientsAreFiniteDifferences(t *testing.T) {
	const columns, h, scale, begin = 5, 1e-6, 0.7, 0.25
	const related = "distmult of triples"
	for _, decoder := range append(slices.Clone(Decoders), related) {
		for _, of := range slices.Sorted(maps.Keys(summands)) {
			s := &Spec{Decoder: decoder, Margin: 0.3}
			if decoder == related {
				s.Decoder, s.Relations = OfTriples, 3
			}
			loss, size := lossOf(t, s, of, columns)
			r := rand.New(rand.NewPCG(1, 1))
			at := make([]float64, size)
			for i := range at {
				at[i] = r.NormFloat64()
			}
			if _, gradient := loss(at, scale, begin); !slices.ContainsFunc(gradient[5*columns:], func(x float64) bool { return x != begin }) && decoder != "dot" {
				t.Errorf("%s, %s: weights have no gradient", decoder, of)
			}
			_, gradient := loss(at, scale, begin)
			for i := range at {
				x := slices.Clone(at)
				x[i] += h
				more, _ := loss(x, 1, 0)
				x[i] -= 2 * h
				less, _ := loss(x, 1, 0)
				want := (more - less) / (2 * h) * scale
				if i >= 5*columns {
					want += begin // it is added to what is there
				}
				if math.Abs(gradient[i]-want) > 1e-8 {
					t.Errorf("%s, %s: derivative %d is %g, want %g", decoder, of, i, gradient[i], want)
				}
			}
		}
	}
}

// Losses and scores are those of their formulas.
func TestLossesAreTheirFormulas(t *testing.T) {
	const columns = 6
	r := rand.New(rand.NewPCG(3, 1))
	// Minus the logarithm of a sigmoid, to the last digits wherever x lies: the summands
	// are held against it to 1e-12.
	surprise := func(x float64) float64 {
		if x < 0 {
			return math.Log1p(math.Exp(x)) - x
		}
		return math.Log1p(math.Exp(-x))
	}
	for _, decoder := range Decoders {
		for _, of := range slices.Sorted(maps.Keys(summands)) {
			for _, margin := range []float64{0, 0.3} {
				loss, size := lossOf(t, &Spec{Decoder: decoder, Margin: margin}, of, columns)
				x := make([]float64, size)
				for i := range x {
					x[i] = r.NormFloat64()
				}
				w := x[5*columns:]
				score := func(a, b int32) (sum float64) {
					hidden := [columns]float64{}
					for c := range columns {
						p := x[int(a)*columns+c] * x[int(b)*columns+c]
						switch decoder {
						case "distmult":
							p *= w[c]
						case "mlp":
							for j := range hidden {
								hidden[j] += p * w[c*columns+j]
							}
							p = 0
						}
						sum += p
					}
					if decoder == "mlp" {
						for j := range hidden {
							sum += max(0, hidden[j]+w[columns*columns+j]) * w[columns*(columns+1)+j]
						}
						sum += w[columns*(columns+2)]
					}
					return sum
				}
				want := 0.0
				for _, pair := range [][]int32{someWords[:9], someWords[9:]} {
					yes, first, second := score(pair[0], pair[1]), score(pair[3], pair[4]), score(pair[6], pair[7])
					switch of {
					case CrossEntropies:
						want += (surprise(yes) + surprise(-first) + surprise(-second)) / 3
					case BPR:
						want += (surprise(yes-first) + surprise(yes-second)) / 2
					case Softmax:
						want += math.Log(1 + math.Exp(first-yes) + math.Exp(second-yes))
					case Margin:
						m := margin
						if m == 0 {
							m = 1
						}
						want += (max(0, m-yes+first) + max(0, m-yes+second)) / 2
					}
				}
				if got, _ := loss(x, 1, 0); math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
					t.Errorf("%s, %s, margin %g: the loss is %g, want %g", decoder, of, margin, got, want)
				}
			}
		}
	}
	for _, logit := range []float64{-800, 800} {
		for _, edge := range []bool{false, true} {
			if loss, slope := CrossEntropy(logit, edge); math.IsNaN(loss+slope) || math.IsInf(loss, 0) || math.Abs(slope) > 1 {
				t.Errorf("a logit of %g has the loss %g and the slope %g", logit, loss, slope)
			}
		}
	}
}

// Relations of DistMult have weights of their own.
func TestRelationsHaveTheirWeights(t *testing.T) {
	d := NewDecoder("distmult", 2)
	w, a, b := []float64{1, 2, 3, 5}, []float64{7, 11}, []float64{13, 17}
	dw, da, db := make([]float64, 4), make([]float64, 2), make([]float64, 2)
	if got := d.Score(w, a, b, 1); got != 3*7*13+5*11*17 {
		t.Errorf("relation 1 has the score %g", got)
	}
	d.Back(dw, da, db, w, a, b, 1, 2)
	if want := []float64{0, 0, 2 * 7 * 13, 2 * 11 * 17}; !slices.Equal(dw, want) {
		t.Errorf("gradients of the weights are %v, want %v", dw, want)
	}
	if !slices.Equal(da, []float64{2 * 13 * 3, 2 * 17 * 5}) || !slices.Equal(db, []float64{2 * 7 * 3, 2 * 11 * 5}) {
		t.Errorf("gradients of the rows are %v and %v", da, db)
	}
}

// A loss that was computed before takes no memory again.
func TestALossAllocatesNothing(t *testing.T) {
	const rows, columns = 5, 3
	d := cpu.New(1)
	defer d.Close()
	arena, err := d.NewArena(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	z, w, dw := arena.Alloc(d.Type(), rows, columns), arena.Alloc(d.Type(), 1, 16), arena.Alloc(d.Type(), 1, 16)
	for _, of := range slices.Sorted(maps.Keys(summands)) {
		loss := NewLoss(&Spec{Decoder: "mlp"}, of, columns)
		loss.Attach(w, dw)
		one := func() { loss.Sum(d, z, z, someWords, 1) }
		one()
		if n := testing.AllocsPerRun(10, one); n > 0 {
			t.Errorf("%s: %g allocations", of, n)
		}
	}
}
