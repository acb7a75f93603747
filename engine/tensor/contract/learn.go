package contract

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

type criterion func(d tensor.Device, dz, z tensor.Matrix, labels []int32, scale float64) (float64, int)

func crossEntropies(b *bench) {
	b.judgements("CrossEntropy", func(d tensor.Device, dz, z tensor.Matrix, labels []int32, scale float64) (float64, int) {
		return d.CrossEntropy(dz, z, labels, scale)
	})
}

func binaryCrossEntropies(b *bench) {
	b.judgements("BinaryCrossEntropy", func(d tensor.Device, dz, z tensor.Matrix, labels []int32, scale float64) (float64, int) {
		return d.BinaryCrossEntropy(dz, z, labels, scale)
	})
}

// opinions are generators of logits by kind.
var opinions = map[string]func(b *bench, rows, cols int) []float64{
	"plain": func(b *bench, rows, cols int) []float64 { return b.fine(rows * cols) },
	"ties":  func(b *bench, rows, cols int) []float64 { return b.ties(rows * cols) },
	"zeros": func(_ *bench, rows, cols int) []float64 { return make([]float64, rows*cols) },
	// The largest are in the last columns, which kernels handle separately.
	"late": func(b *bench, rows, cols int) []float64 {
		x := b.fine(rows * cols)
		for i := range rows {
			for j := max(0, cols-3); j < cols; j++ {
				x[i*cols+j] = []float64{200, -200, 199.5}[b.below(3)]
			}
		}
		return x
	},
	"early": func(b *bench, rows, cols int) []float64 {
		x := b.fine(rows * cols)
		for i := range rows {
			x[i*cols] = []float64{200, -200, 88.5}[b.below(3)]
		}
		return x
	},
	"far down": func(b *bench, rows, cols int) []float64 {
		x := b.fine(rows * cols)
		for i := range x {
			x[i] = float64(float32(x[i]*50 - 1000))
		}
		return x
	},
}

func (b *bench) judgements(name string, f criterion) {
	for _, kind := range []string{"plain", "ties", "zeros", "late", "early", "far down"} {
		for _, cols := range append([]int{5, 10, 47}, ragged...) {
			b.judgement(name, kind, b.size(), cols, b.below(5), f)
		}
		b.judgement(name, kind, 5003, 7, 2, f)
		b.judgement(name, kind, wide[0], wide[1], 1, f)
	}
	b.judgement(name, "plain", 2050, 130, 3, f)
	for _, cols := range ragged {
		b.lost(name, cols, f)
	}
}

// judgement tests a loss with a share of labels left out, from 0 of 4 up to all.
func (b *bench) judgement(name, kind string, rows, cols, unlabelled int, f criterion) {
	mode, scale := b.below(3), []float64{1, -.5, 1.0 / 1024}[b.below(3)]
	gradient := [...]string{"left out", "apart", "in place"}[mode]
	b.try(fmt.Sprintf("%s, %d x %d, %s, %d/4 without labels, gradient %s", name, rows, cols, kind, unlabelled, gradient), func() {
		x, labels := opinions[kind](b, rows, cols), make([]int32, rows)
		terms, slopes := 0.0, make([]float64, rows*cols)
		for i := range labels {
			labels[i] = int32(b.below(cols))
			if b.below(4) < unlabelled {
				labels[i] = int32(-1 - b.below(2)*1000)
			}
			row := x[i*cols:][:cols]
			for j, v := range row {
				slopes[i*cols+j] = math.Abs(scale)
				if labels[i] < 0 {
					slopes[i*cols+j] = 0
				} else if name == "BinaryCrossEntropy" || int(labels[i]) == j {
					terms += 1 + math.Abs(v)
				}
			}
		}
		z := b.in("z", b.native(), rows, cols, x)
		var dz *operand
		switch mode {
		case 1:
			dz = b.out("dz", b.native(), rows, cols)
		case 2:
			dz = z
			dz.output = true
		}
		if dz != nil {
			dz.scale = slopes
		}
		var loss [sides]float64
		var hits [sides]int
		b.both(func(s side) { loss[s.at], hits[s.at] = f(s.Device, s.of(dz), s.of(z), labels, scale) })
		b.scalar("the loss", loss[judged], loss[right], terms)
		if hits[judged] != hits[right] {
			b.fault("%d rows are right, want %d", hits[judged], hits[right])
		}
	})
}

// lost tests that a loss with one NaN logit is NaN.
func (b *bench) lost(name string, cols int, f criterion) {
	b.try(fmt.Sprintf("%s, 3 x %d, one is NaN", name, cols), func() {
		x := b.fine(3 * cols)
		x[b.below(len(x))] = math.NaN()
		z := b.in("z", b.native(), 3, cols, x)
		loss, _ := f(b.devices[judged], tensor.Matrix{}, z.view[judged], make([]int32, 3), 1)
		if !math.IsNaN(loss) {
			b.fault("the loss is %g", loss)
		}
	})
}

func adams(b *bench) {
	for i := range 40 {
		o := tensor.AdamStep{Rate: .01, Beta1: .9, Beta2: .999, Epsilon: 1e-8, Step: []uint64{1, 2, 1000, 1 << 40}[i%4]}
		if b.coin() {
			o.Decay = .1
		}
		o.Decoupled = b.coin()
		if b.below(4) == 0 {
			o.Rate, o.Beta1, o.Beta2, o.Epsilon = .5, .5, .9, 1e-3
		}
		rows, cols := b.size(), b.size()
		if i < 2 {
			rows, cols = 513, 257
		}
		b.try(fmt.Sprintf("Adam, %d x %d, %+v", rows, cols, o), func() {
			n := rows * cols
			weights, grads, moments, squares := b.fine(n), b.fine(n), make([]float64, n), make([]float64, n)
			if o.Step > 1 {
				moments = b.fine(n)
				for j, x := range b.fine(n) {
					squares[j] = float64(float32(x*x + 1e-4))
				}
			}
			w, m, v := b.packed("w", rows, cols, weights), b.packed("m", rows, cols, moments), b.packed("v", rows, cols, squares)
			g := b.packed("g", rows, cols, grads)
			g.output = false
			w.scale, m.scale, v.slack = make([]float64, n), make([]float64, n), 0
			for j := range n {
				m.scale[j] = math.Abs(moments[j]) + math.Abs(grads[j]) + math.Abs(weights[j])
				w.scale[j] = math.Abs(weights[j]) + 100*o.Rate*m.scale[j]
			}
			v.slack = .01
			steps := 3
			b.both(func(s side) {
				for k := range steps {
					o := o
					o.Step += uint64(k)
					s.Adam(s.of(w), s.of(g), s.of(m), s.of(v), o)
				}
			})
		})
	}
}

func descents(b *bench) {
	for i := range 40 {
		o := tensor.SGDStep{Rate: .25, Momentum: []float64{0, 0, .9}[b.below(3)], Decay: []float64{0, .125}[b.below(2)]}
		rows, cols, kept := b.size(), b.size(), o.Momentum != 0
		if i < 2 {
			rows, cols = 513, 257
		}
		b.try(fmt.Sprintf("SGD, %d x %d, %+v, moments %v", rows, cols, o, kept), func() {
			w, g := b.packed("w", rows, cols, b.fine(rows*cols)), b.packed("g", rows, cols, b.fine(rows*cols))
			g.output = false
			w.slack = 3
			var m *operand
			if kept {
				m = b.packed("m", rows, cols, b.fine(rows*cols))
				m.slack = 3
			}
			b.both(func(s side) {
				for range 3 {
					s.SGD(s.of(w), s.of(g), s.of(m), o)
				}
			})
		})
	}
}
