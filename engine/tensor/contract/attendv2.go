package contract

import "math"

// secondly is shared by AttendV2 and its gradient.
type secondly struct {
	*neighbourhood
	x, to, a, y, stats *operand
	largest            float64 // largest magnitude of all scores
}

func (n *neighbourhood) secondly(b *bench) *secondly {
	v := &secondly{
		neighbourhood: n,
		x:             b.in("x", b.native(), n.Cols, n.cols(), b.fine(n.Cols*n.cols())),
		to:            b.in("to", b.native(), n.Rows, n.cols(), b.fine(n.Rows*n.cols())),
		a:             n.hold(b, "a", 1, n.cols()),
		y:             b.out("y", b.native(), n.Rows, n.cols()),
		stats:         b.out("stats", b.native(), n.Rows, 2*n.heads),
	}
	for h := range n.heads {
		sum := 0.0
		for j := h * n.width; j < (h+1)*n.width; j++ {
			sum += math.Abs(v.a.before[j])
		}
		v.largest = max(v.largest, 2*sum)
	}
	v.stats.opaque = true
	return v
}

func (v *secondly) run(s side) {
	s.AttendV2(s.of(v.y), s.of(v.stats), v.CSR, s.of(v.x), s.of(v.to), s.of(v.a), slope, v.drop, v.own)
}

// sum returns x[s] + to[t] in one column.
func (v *secondly) sum(t, s, j int) float64 {
	return v.x.before[s*v.cols()+j] + v.to.before[t*v.cols()+j]
}

func (v *secondly) score(t, s, h int) float64 {
	score := 0.0
	for j := h * v.width; j < (h+1)*v.width; j++ {
		score += v.a.before[j] * leaky(v.sum(t, s, j))
	}
	return score
}

func attentionsV2(b *bench) {
	b.attended(func(n *neighbourhood) {
		b.try("AttendV2, "+n.name, func() {
			v := n.secondly(b)
			v.y.factor, v.y.scale = 1+v.largest, make([]float64, n.Rows*n.cols())
			for _, e := range n.edgeTerms(v.x.before, repeated(1, n.Rows*n.cols()), v.score) {
				for j := e.head * n.width; j < (e.head+1)*n.width; j++ {
					v.y.scale[e.target*n.cols()+j] += e.alpha * e.kept * math.Abs(v.x.before[e.source*n.cols()+j])
				}
			}
			b.both(v.run)
		})
	})
}

func attentionsV2Back(b *bench) {
	b.attended(func(n *neighbourhood) {
		b.try("AttendV2Back, "+n.name, func() {
			v := n.secondly(b)
			v.y.opaque = true
			dy := b.in("dy", b.native(), n.Rows, n.cols(), b.fine(n.Rows*n.cols()))
			dx, dto := b.out("dx", b.native(), n.Cols, n.cols()), b.out("dto", b.native(), n.Rows, n.cols())
			da := b.inout("da", b.native(), 1, n.cols(), b.fine(n.cols()))
			for _, o := range []*operand{dx, dto, da} {
				o.factor, o.scale = 1+v.largest, make([]float64, len(o.before))
			}
			da.slack = 1
			for _, e := range n.edgeTerms(v.x.before, dy.before, v.score) {
				n.spreadBack(dx.scale, dy.before, e)
				for j := e.head * n.width; j < (e.head+1)*n.width; j++ {
					da.scale[j] += e.grad * math.Abs(leaky(v.sum(e.target, e.source, j)))
					dx.scale[e.source*n.cols()+j] += e.grad * math.Abs(v.a.before[j])
					dto.scale[e.target*n.cols()+j] += e.grad * math.Abs(v.a.before[j])
				}
			}
			b.both(func(s side) {
				v.run(s)
				s.AttendV2Back(s.of(dx), s.of(dto), s.of(da), n.CSR, s.of(dy), s.of(v.stats), s.of(v.x), s.of(v.to), s.of(v.a), slope, n.drop, n.own)
			})
		})
	})
}
