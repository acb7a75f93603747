package edges

import "github.com/hopmesh/hopmesh/engine/tensor"

// sources is the second pass of backward, over columns.
type sources struct {
	a     *attention
	cut   cut
	g     *tensor.Transpose
	dx    tensor.Matrix
	dleft tensor.Matrix // of the first kind
}

// Do runs one chunk.
func (p *sources) Do(chunk, worker int) {
	s := &p.a.e.each[worker]
	s.span = span{heads: p.a.heads}
	s.span.from(p.a.dy)
	first, last, hub := p.cut.chunk(chunk)
	if first < last {
		p.piece(s, p.cut.indptr[first:last+1], first)
	}
	if last < hub {
		from, to := p.cut.indptr[last], p.cut.indptr[last+1]
		for at := from; at < to; at += p.cut.grain {
			s.ends = [2]int64{at, min(at+p.cut.grain, to)}
			s.span.onward = at > from
			p.piece(s, s.ends[:], last)
		}
		s.span.onward = false
	}
}

// piece sums the entries of columns from this one on.
func (p *sources) piece(s *scratch, indptr []int64, column int) {
	h := p.a.heads
	from, to := indptr[0], indptr[len(indptr)-1]
	for i, at := range p.g.Edges[from:to] {
		copy(s.weights[i*h:][:h], p.a.e.kept[int(at)*2*h:])
	}
	if p.a.a != nil {
		for i, at := range p.g.Edges[from:to] {
			copy(s.more[i*h:][:h], p.a.e.kept[int(at)*2*h+h:])
		}
	}
	s.span.to(p.dx, column)
	s.span.indptr, s.span.indices = indptr, p.g.Rows[from:p.cut.indptr[p.cut.rows()]]
	s.span.values = s.weights
	p.a.e.sum(s)
	for c := range len(indptr) - 1 {
		if p.a.a == nil {
			p.left(column+c, p.g.Edges[indptr[c]:indptr[c+1]], s.span.onward)
		} else if indptr[c] < indptr[c+1] && p.a.x.Cols > 0 {
			p.second(s, column+c, p.g.Rows[indptr[c]:indptr[c+1]], s.more[int(indptr[c]-from)*h:])
		}
	}
}

// left sums the gradients of a source's scores.
func (p *sources) left(column int, edges []int32, onward bool) {
	h := p.a.heads
	d := p.dleft.F32()[column*p.dleft.Stride:][:h]
	if !onward {
		clear(d)
	}
	for _, at := range edges {
		for j, v := range p.a.e.kept[int(at)*2*h+h:][:h] {
			d[j] += v
		}
	}
}

// second adds to dx the part that comes through the second kind's scores, whose gradients
// are given.
func (p *sources) second(s *scratch, column int, targets []int32, grads []float32) {
	a := p.a
	dx := p.dx.F32()[column*p.dx.Stride:][:a.x.Cols]
	x := a.x.F32()[column*a.x.Stride:][:a.x.Cols]
	// The gradient of a was added up in the first pass; here it goes to scratch and is
	// ignored.
	a.e.leakyBackOf(dx, s.row[:a.x.Cols], a.a, a.to.F32(), a.to.Stride, targets, x, grads, a.heads, a.heads, a.slope)
}
