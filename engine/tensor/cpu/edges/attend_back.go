package edges

import "github.com/hopmesh/hopmesh/engine/tensor"

// AttendBack implements tensor.Attentions.
func (e *Edges) AttendBack(dx, dleft, dright tensor.Matrix, g *tensor.CSR, dy, stats, x, left, right tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	a := e.attend(stats, g, x, left.Cols, slope, drop, own)
	a.first(g, left, right)
	mustBe(dright, g.Rows, a.heads, "the gradient of the targets' scores has their shape")
	mustBe(dleft, g.Cols, a.heads, "the gradient of the sources' scores has their shape")
	a.dright = dright
	a.backward(dx, g, dy, dleft)
	*a = attention{}
}

// AttendV2Back implements tensor.Attentions.
func (e *Edges) AttendV2Back(dx, dto, da tensor.Matrix, g *tensor.CSR, dy, stats, x, to, by tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	a := e.attend(stats, g, x, stats.Cols/2, slope, drop, own)
	a.second(to, by)
	mustBe(dto, g.Rows, x.Cols, "the gradient of what is added for targets has its shape")
	mustBe(da, 1, x.Cols, "the gradient of what scores are multiplied with has its shape")
	a.dto = dto
	chunks := a.cut.chunks()
	e.partial = grown(e.partial, chunks*x.Cols)
	a.backward(dx, g, dy, tensor.Matrix{})
	if x.Cols > 0 {
		addUp(da.F32(), e.partial[:chunks*x.Cols])
	}
	*a = attention{}
}

// backward first goes by rows, which leaves the weights and the gradients of the scores
// of each entry in Edges.kept, head by head, and then by columns.
func (a *attention) backward(dx tensor.Matrix, g *tensor.CSR, dy, dleft tensor.Matrix) {
	mustBe(dx, g.Cols, a.x.Cols, "attention's input gradient has the shape of its input")
	mustBe(dy, g.Rows, a.x.Cols, "attention's output gradient has the rows of the graph and the columns of its input")
	must(g.Transposed != nil, "the way back needs the transposed graph")
	e, t := a.e, g.Transposed
	e.kept = grown(e.kept, 2*a.heads*g.Entries())
	a.back, a.dy = true, dy
	e.pool.Run(a.cut.chunks(), a)
	e.sources = sources{a: a, cut: cutOf(t.Indptr[:g.Cols+1], 4*(a.x.Cols+4*a.heads)), g: t, dx: dx, dleft: dleft}
	e.ready(e.sources.cut, a.heads, a.x.Cols)
	e.pool.Run(e.sources.cut.chunks(), &e.sources)
	e.sources = sources{}
}

// keep returns the memory kept for entries from this one on: weights, then gradients.
func (a *attention) keep(from int64) []float32 {
	return a.e.kept[int(from-a.cut.indptr[0])*2*a.heads:]
}

// backChunk runs the first pass of one chunk.
func (a *attention) backChunk(s *scratch, chunk, first, last, hub int) {
	var da []float32
	if a.a != nil && a.x.Cols > 0 {
		da = a.e.partial[chunk*a.x.Cols:][:a.x.Cols]
		clear(da)
	}
	h, indptr := a.heads, a.cut.indptr
	if first < last {
		entries := int(indptr[last] - indptr[first])
		w := s.weights[:entries*h]
		of := func(row int) []float32 {
			return w[int(indptr[row]-indptr[first])*h : int(indptr[row+1]-indptr[first])*h]
		}
		for row := first; row < last; row++ {
			a.lowered(of(row), row, indptr[row])
		}
		exp(w)
		for row := first; row < last; row++ {
			a.begin(s, row)
			a.weightsBack(s, of(row), row, indptr[row])
			a.scoresBack(s, of(row), row, indptr[row], da)
		}
	}
	if last < hub {
		a.hubBack(s, last, da)
	}
}

// hubBack runs the first pass of a row of many entries in pieces: once for the mean of
// the weights' gradients, once for the scores.
func (a *attention) hubBack(s *scratch, row int, da []float32) {
	from, to := a.cut.indptr[row], a.cut.indptr[row+1]
	a.begin(s, row)
	for at := from; at < to; at += a.cut.grain {
		w := s.weights[:int(min(a.cut.grain, to-at))*a.heads]
		a.lowered(w, row, at)
		exp(w)
		a.weightsBack(s, w, row, at)
	}
	for at := from; at < to; at += a.cut.grain {
		w := s.weights[:int(min(a.cut.grain, to-at))*a.heads]
		a.lowered(w, row, at)
		exp(w)
		a.divided(w, row)
		a.scoresBack(s, w, row, at, da)
	}
}

// begin clears the sums over a row.
func (a *attention) begin(s *scratch, row int) {
	clear(s.heads[:a.heads])
	if a.a == nil {
		clear(a.dright.F32()[row*a.dright.Stride:][:a.heads])
	} else if a.x.Cols > 0 {
		clear(a.dto.F32()[row*a.dto.Stride:][:a.x.Cols])
	}
}

// lowered computes the scores of entries from this one on, minus the largest.
func (a *attention) lowered(w []float32, row int, from int64) {
	a.scores(w, row, from)
	lower(w, a.stat(row))
}

// divided turns the exponentials of these into the softmax.
func (a *attention) divided(w []float32, row int) {
	stat := a.stat(row)
	for j := range a.heads {
		inverse := 1 / stat[2*j+1]
		for at := j; at < len(w); at += a.heads {
			w[at] *= inverse
		}
	}
}

// weightsBack makes w the softmax, keeps the weights and their gradients, and adds up,
// per head, the gradient of the softmax's normalisation.
func (a *attention) weightsBack(s *scratch, w []float32, row int, from int64) {
	h := a.heads
	n := len(w) / h
	if n == 0 {
		return
	}
	a.divided(w, row)
	keep := a.keep(from)
	a.dropped(keep, 2*h, w, row, from)
	if a.x.Cols == 0 {
		for i := range n {
			clear(keep[i*2*h+h:][:h])
		}
		return
	}
	dy := a.dy.F32()[row*a.dy.Stride:][:a.x.Cols]
	a.e.productsOf(keep[h:], 2*h, h, dy, a.x.F32(), a.x.Stride, a.indices[from:from+int64(n)])
	mean := s.heads[:h]
	for i := range n {
		k := keep[i*2*h:][:2*h]
		for j := range mean {
			mean[j] += k[j] * k[h+j]
		}
	}
}

// scoresBack keeps the gradients of the scores and propagates them, except to the
// sources. For the first kind it makes them the gradients of the sums inside leaky.
func (a *attention) scoresBack(s *scratch, w []float32, row int, from int64, da []float32) {
	h := a.heads
	n := len(w) / h
	if n == 0 {
		return
	}
	keep, mean := a.keep(from), s.heads[:h]
	for i := range n {
		k := keep[i*2*h:][:2*h]
		for j, v := range w[i*h:][:h] {
			k[h+j] = k[j]*k[h+j] - v*mean[j]
		}
	}
	indices := a.indices[from : from+int64(n)]
	if a.a != nil {
		if a.x.Cols > 0 {
			to, dto := a.to.F32()[row*a.to.Stride:][:a.x.Cols], a.dto.F32()[row*a.dto.Stride:][:a.x.Cols]
			a.e.leakyBackOf(dto, da, a.a, a.x.F32(), a.x.Stride, indices, to, keep[h:], 2*h, h, a.slope)
		}
		return
	}
	right := a.right.F32()[row*a.right.Stride:][:h]
	dright := a.dright.F32()[row*a.dright.Stride:][:h]
	left := a.left.F32()
	for i, source := range indices {
		d := keep[i*2*h+h:][:h]
		for j, l := range left[int(source)*a.left.Stride:][:h] {
			d[j] *= steep(l+right[j], a.slope)
			dright[j] += d[j]
		}
	}
}
