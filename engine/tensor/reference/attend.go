package reference

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// HeadDot implements tensor.Attentions.
func (*Device) HeadDot(y, x, a tensor.Matrix) {
	width := headWidth(x, y.Cols)
	mustBe("y", y, x.Rows, y.Cols)
	mustBe("a", a, 1, x.Cols)
	from, by := read(x), read(a).row(0)
	for i := range y.Rows {
		to := row(y, i)
		clear(to)
		for j, v := range from.row(i) {
			to[j/width] += v * by[j]
		}
	}
}

// HeadDotBack implements tensor.Attentions.
func (*Device) HeadDotBack(dx, da, dy, x, a tensor.Matrix) {
	width := headWidth(x, dy.Cols)
	mustBe("dx", dx, x.Rows, x.Cols)
	mustBe("da", da, 1, x.Cols)
	mustBe("dy", dy, x.Rows, dy.Cols)
	mustBe("a", a, 1, x.Cols)
	from, by, grad := read(x), read(a).row(0), read(dy)
	for i := range x.Rows {
		to, g := row(dx, i), grad.row(i)
		for j, v := range from.row(i) {
			to[j] += g[j/width] * by[j]
			row(da, 0)[j] += g[j/width] * v
		}
	}
}

func headWidth(x tensor.Matrix, heads int) int {
	must(heads > 0 && x.Cols%heads == 0, "%d heads of %d columns", heads, x.Cols)
	return x.Cols / heads
}

// leaky returns x, or slope*x if x is negative; steep is its derivative.
func leaky(x float64, slope float32) float64 { return x * steep(x, slope) }

func steep(x float64, slope float32) float64 {
	if x < 0 {
		return float64(slope)
	}
	return 1
}

// attention is shared by both kinds: everything but the scores.
type attention struct {
	g     *tensor.CSR
	x     tensor.Matrix
	heads int
	drop  tensor.Dropout
	own   int
	// score returns the score of an entry's head, after leaky.
	score func(target, source, head int) float64
	// back propagates the gradient of a score.
	back func(target, source, head int, grad float64)
}

// kept returns the dropout factor of a weight: 0 if it is dropped, otherwise 1/(1-P).
func (a *attention) kept(target, source, head int) float64 {
	if a.drop.P == 0 {
		return 1
	}
	key := a.drop.Key.With(uint64(a.drop.Vertices[a.own+target])).With(uint64(a.drop.Vertices[source]))
	return drop(1, key, head, a.drop.P)
}

// attend keeps in stats, head after head, the largest score and the sum; both are 0 in
// rows without entries.
func (a *attention) attend(y, stats tensor.Matrix) {
	width := headWidth(a.x, a.heads)
	mustBe("y", y, a.g.Rows, a.x.Cols)
	mustBe("stats", stats, a.g.Rows, 2*a.heads)
	must(a.x.Rows == a.g.Cols, "%d sources have %d rows", a.g.Cols, a.x.Rows)
	from := read(a.x)
	for t := range a.g.Rows {
		to, es := row(y, t), entries(a.g, t)
		clear(to)
		clear(row(stats, t))
		if len(es) == 0 {
			continue
		}
		for h := range a.heads {
			largest, sum := math.Inf(-1), 0.0
			for _, e := range es {
				largest = max(largest, a.score(t, e.source, h))
			}
			for _, e := range es {
				sum += math.Exp(a.score(t, e.source, h) - largest)
			}
			row(stats, t)[2*h], row(stats, t)[2*h+1] = largest, sum
			for _, e := range es {
				w := math.Exp(a.score(t, e.source, h)-largest) / sum * a.kept(t, e.source, h)
				source := from.row(e.source)
				for j := h * width; j < (h+1)*width; j++ {
					to[j] += w * source[j]
				}
			}
		}
	}
}

// attendBack adds to dx and passes the gradients of the scores to back.
func (a *attention) attendBack(dx, dy, stats tensor.Matrix) {
	width := headWidth(a.x, a.heads)
	mustBe("dx", dx, a.g.Cols, a.x.Cols)
	mustBe("dy", dy, a.g.Rows, a.x.Cols)
	mustBe("stats", stats, a.g.Rows, 2*a.heads)
	from, grad, known := read(a.x), read(dy), read(stats)
	for t := range a.g.Rows {
		es, g := entries(a.g, t), grad.row(t)
		alpha, dalpha := make([]float64, len(es)), make([]float64, len(es))
		for h := range a.heads {
			largest, sum := known.row(t)[2*h], known.row(t)[2*h+1]
			mean := 0.0 // of dalpha, weighted by alpha
			for i, e := range es {
				alpha[i] = math.Exp(a.score(t, e.source, h)-largest) / sum
				kept := a.kept(t, e.source, h)
				dalpha[i] = 0
				source, to := from.row(e.source), row(dx, e.source)
				for j := h * width; j < (h+1)*width; j++ {
					dalpha[i] += kept * g[j] * source[j]
					to[j] += kept * alpha[i] * g[j]
				}
				mean += alpha[i] * dalpha[i]
			}
			for i, e := range es {
				a.back(t, e.source, h, alpha[i]*(dalpha[i]-mean))
			}
		}
	}
}

// Attend implements tensor.Attentions.
func (*Device) Attend(y, stats tensor.Matrix, g *tensor.CSR, x, left, right tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	a := additive(g, x, left, right, slope, drop, own)
	a.attend(y, stats)
}

// AttendBack implements tensor.Attentions. The slope at 0 is 1.
func (d *Device) AttendBack(dx, dleft, dright tensor.Matrix, g *tensor.CSR, dy, stats, x, left, right tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	a := additive(g, x, left, right, slope, drop, own)
	mustBe("dleft", dleft, g.Cols, left.Cols)
	mustBe("dright", dright, g.Rows, left.Cols)
	l, r := read(left), read(right)
	a.back = func(t, s, h int, grad float64) {
		grad *= steep(l.row(s)[h]+r.row(t)[h], slope)
		row(dleft, s)[h] += grad
		row(dright, t)[h] += grad
	}
	d.Zero(dx)
	d.Zero(dleft)
	d.Zero(dright)
	a.attendBack(dx, dy, stats)
}

func additive(g *tensor.CSR, x, left, right tensor.Matrix, slope float32, drop tensor.Dropout, own int) *attention {
	mustBe("left", left, g.Cols, left.Cols)
	mustBe("right", right, g.Rows, left.Cols)
	l, r := read(left), read(right)
	return &attention{g: g, x: x, heads: left.Cols, drop: drop, own: own, score: func(t, s, h int) float64 {
		return leaky(l.row(s)[h]+r.row(t)[h], slope)
	}}
}

// AttendV2 implements tensor.Attentions. The number of heads follows from the columns of
// stats.
func (*Device) AttendV2(y, stats tensor.Matrix, g *tensor.CSR, x, to, a tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	multiplicative(g, stats, x, to, a, slope, drop, own).attend(y, stats)
}

// AttendV2Back implements tensor.Attentions. The slope at 0 is 1.
func (d *Device) AttendV2Back(dx, dto, da tensor.Matrix, g *tensor.CSR, dy, stats, x, to, a tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	at := multiplicative(g, stats, x, to, a, slope, drop, own)
	mustBe("dto", dto, g.Rows, x.Cols)
	mustBe("da", da, 1, x.Cols)
	from, ends, by := read(x), read(to), read(a).row(0)
	width := headWidth(x, at.heads)
	at.back = func(t, s, h int, grad float64) {
		source, target := from.row(s), ends.row(t)
		toA, toSource, toTarget := row(da, 0), row(dx, s), row(dto, t)
		for j := h * width; j < (h+1)*width; j++ {
			u := source[j] + target[j]
			toA[j] += grad * leaky(u, slope)
			toSource[j] += grad * by[j] * steep(u, slope)
			toTarget[j] += grad * by[j] * steep(u, slope)
		}
	}
	d.Zero(dx)
	d.Zero(dto)
	at.attendBack(dx, dy, stats)
}

func multiplicative(g *tensor.CSR, stats, x, to, a tensor.Matrix, slope float32, drop tensor.Dropout, own int) *attention {
	mustBe("to", to, g.Rows, x.Cols)
	mustBe("a", a, 1, x.Cols)
	heads := stats.Cols / 2
	width := headWidth(x, heads)
	from, ends, by := read(x), read(to), read(a).row(0)
	return &attention{g: g, x: x, heads: heads, drop: drop, own: own, score: func(t, s, h int) float64 {
		source, target, sum := from.row(s), ends.row(t), 0.0
		for j := h * width; j < (h+1)*width; j++ {
			sum += by[j] * leaky(source[j]+target[j], slope)
		}
		return sum
	}}
}
