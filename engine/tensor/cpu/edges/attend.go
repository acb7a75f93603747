package edges

import (
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// attention is the state of either kind of attention on the rows of a graph, forward or
// backward. They differ in the scores alone.
type attention struct {
	e       *Edges
	cut     cut
	indices []int32
	heads   int
	width   int // of a head
	slope   float32

	y, stats, x tensor.Matrix
	left, right tensor.Matrix // the scores' two terms: H columns each
	to          tensor.Matrix // for GATv2: the rows added to x,
	a           []float32     // and the vector their activation is multiplied by; nil for the first kind

	drop  keyed.Key
	below uint32  // an element is dropped if its number is below; 0: none is
	kept  float32 // factor of those that are kept
	ends  []uint32
	own   int

	back   bool
	dy     tensor.Matrix
	dright tensor.Matrix
	dto    tensor.Matrix
}

// Attend implements tensor.Attentions.
func (e *Edges) Attend(y, stats tensor.Matrix, g *tensor.CSR, x, left, right tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	a := e.attend(stats, g, x, left.Cols, slope, drop, own)
	a.first(g, left, right)
	a.forward(y)
}

// AttendV2 implements tensor.Attentions.
func (e *Edges) AttendV2(y, stats tensor.Matrix, g *tensor.CSR, x, to, by tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	a := e.attend(stats, g, x, stats.Cols/2, slope, drop, own)
	a.second(to, by)
	a.forward(y)
}

// attend prepares what both kinds need, forward and backward.
func (e *Edges) attend(stats tensor.Matrix, g *tensor.CSR, x tensor.Matrix, heads int, slope float32, drop tensor.Dropout, own int) *attention {
	must(heads > 0 && x.Cols%heads == 0, "attention's input has the columns of so many heads")
	must(x.Rows == g.Cols, "attention's input has a row for each column of the graph")
	mustBe(stats, g.Rows, 2*heads, "attention's stats have two numbers for each head of a row")
	e.byHeads(x.Cols, heads)
	a := &e.attention
	*a = attention{
		e: e, indices: g.Indices, heads: heads, width: x.Cols / heads, slope: slope, stats: stats, x: x, own: own,
		cut: cutOf(g.Indptr[:g.Rows+1], 4*(x.Cols+4*heads)),
	}
	e.ready(a.cut, heads, x.Cols)
	if drop.P > 0 {
		a.drop, a.below, a.ends = drop.Key, keyed.Threshold(float64(drop.P)), drop.Vertices
		if drop.P < 1 {
			a.kept = float32(1 / (1 - float64(drop.P)))
		}
	}
	return a
}

func (a *attention) first(g *tensor.CSR, left, right tensor.Matrix) {
	mustBe(left, g.Cols, a.heads, "the scores of sources have a row for each column of the graph")
	mustBe(right, g.Rows, a.heads, "the scores of targets have the rows of the graph")
	a.left, a.right = left, right
}

func (a *attention) second(to, by tensor.Matrix) {
	mustBe(to, a.cut.rows(), a.x.Cols, "what is added for targets has the rows of the graph")
	mustBe(by, 1, a.x.Cols, "what scores are multiplied with is a row as wide as the input")
	a.to, a.a = to, by.F32()
}

func (a *attention) forward(y tensor.Matrix) {
	mustBe(y, a.cut.rows(), a.x.Cols, "attention's output has the rows of the graph and the columns of its input")
	a.y = y
	a.e.pool.Run(a.cut.chunks(), a)
	*a = attention{}
}

// Do runs one chunk.
func (a *attention) Do(chunk, worker int) {
	s := &a.e.each[worker]
	s.span = span{heads: a.heads}
	s.span.from(a.x)
	first, last, hub := a.cut.chunk(chunk)
	if a.back {
		a.backChunk(s, chunk, first, last, hub)
		return
	}
	if first < last {
		a.rows(s, first, last-first)
	}
	if last < hub {
		a.hub(s, last)
	}
}

// stat returns the largest score and the sum of each head of a row.
func (a *attention) stat(row int) []float32 {
	return a.stats.F32()[row*a.stats.Stride:][:2*a.heads]
}

// rows computes rows of few entries, all of whose weights fit in scratch.
func (a *attention) rows(s *scratch, first, n int) {
	h := a.heads
	indptr := a.cut.indptr[first : first+n+1]
	entries := int(indptr[n] - indptr[0])
	w := s.weights[:entries*h]
	for r := range n {
		row := w[int(indptr[r]-indptr[0])*h : int(indptr[r+1]-indptr[0])*h]
		a.scores(row, first+r, indptr[r])
		stat := a.stat(first + r)
		largest(stat, row, true)
		lower(row, stat)
	}
	exp(w)
	for r := range n {
		row := w[int(indptr[r]-indptr[0])*h : int(indptr[r+1]-indptr[0])*h]
		stat := a.stat(first + r)
		total(stat, row, true)
		for i := range h {
			s.scale[r*h+i] = 1
			if len(row) > 0 {
				s.scale[r*h+i] = 1 / stat[2*i+1]
			}
		}
		a.dropped(row, h, row, first+r, indptr[r])
	}
	s.span.to(a.y, first)
	s.span.indptr, s.span.indices = indptr, a.indices[indptr[0]:a.cut.indptr[a.cut.rows()]]
	s.span.values, s.span.scale = s.weights, s.scale
	a.e.sum(s)
}

// hub computes a row of many entries in pieces: one pass for the largest score, one for
// the rest.
func (a *attention) hub(s *scratch, row int) {
	h, stat := a.heads, a.stat(row)
	from, to := a.cut.indptr[row], a.cut.indptr[row+1]
	for at := from; at < to; at += a.cut.grain {
		w := s.weights[:int(min(a.cut.grain, to-at))*h]
		a.scores(w, row, at)
		largest(stat, w, at == from)
	}
	s.span.to(a.y, row)
	s.span.scale = nil
	for at := from; at < to; at += a.cut.grain {
		n := min(a.cut.grain, to-at)
		w := s.weights[:int(n)*h]
		a.scores(w, row, at)
		lower(w, stat)
		exp(w)
		total(stat, w, at == from)
		a.dropped(w, h, w, row, at)
		s.ends = [2]int64{at, at + n}
		s.span.indptr, s.span.indices = s.ends[:], a.indices[at:a.cut.indptr[a.cut.rows()]]
		s.span.values, s.span.onward = s.weights, at > from
		a.e.sum(s)
	}
	s.span.onward = false
	if a.x.Cols == 0 {
		return
	}
	y := a.y.F32()[row*a.y.Stride:][:a.x.Cols]
	for i := range h {
		inverse := 1 / stat[2*i+1]
		for j := i * a.width; j < (i+1)*a.width; j++ {
			y[j] *= inverse
		}
	}
}
