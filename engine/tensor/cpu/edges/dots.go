package edges

import "github.com/hopmesh/hopmesh/engine/tensor"

// dots is the state of HeadDot.
type dots struct {
	e     *Edges
	grain int // rows
	y, x  tensor.Matrix
	a     []float32
}

// rowGrain returns the number of rows of so many columns that make a chunk.
func rowGrain(cols int) int { return min(max(1<<17/max(cols, 1), 16), 1<<13) }

// count prepares the indices used for rows that are not reached by edges.
func (e *Edges) count(n int) {
	for i := len(e.inOrder); i <= n; i++ {
		e.inOrder = append(e.inOrder, int32(i))
		e.zeros = append(e.zeros, 0)
		e.single = append(e.single, int64(i))
	}
}

func chunksOf(n, grain int) int { return (n + grain - 1) / grain }

// HeadDot implements tensor.Attentions.
func (e *Edges) HeadDot(y, x, a tensor.Matrix) {
	must(y.Rows == x.Rows && y.Cols > 0 && x.Cols%y.Cols == 0, "products by heads have the rows of x, whose columns are those of so many heads")
	mustBe(a, 1, x.Cols, "what is multiplied with x by heads is a row of as many columns")
	e.dots = dots{e, rowGrain(x.Cols), y, x, a.F32()}
	e.count(e.dots.grain)
	e.pool.Run(chunksOf(x.Rows, e.dots.grain), &e.dots)
	e.dots = dots{}
}

// Do runs one chunk.
func (d *dots) Do(chunk, _ int) {
	first := chunk * d.grain
	n := min(d.grain, d.x.Rows-first)
	y, x := d.y.RowRange(first, n), d.x.RowRange(first, n)
	if x.Cols == 0 {
		for r := range n {
			clear(y.F32()[r*y.Stride:][:y.Cols])
		}
		return
	}
	d.e.productsOf(y.F32(), y.Stride, y.Cols, d.a, x.F32(), x.Stride, d.e.inOrder[:n])
}

// dotsBack is the state of HeadDotBack.
type dotsBack struct {
	e         *Edges
	grain     int
	dx, dy, x tensor.Matrix
	a         []float32
}

// HeadDotBack implements tensor.Attentions.
func (e *Edges) HeadDotBack(dx, da, dy, x, a tensor.Matrix) {
	must(dy.Rows == x.Rows && dy.Cols > 0 && x.Cols%dy.Cols == 0, "products by heads have the rows of x, whose columns are those of so many heads")
	mustBe(dx, x.Rows, x.Cols, "the gradient of x has its shape")
	mustBe(da, 1, x.Cols, "the gradient of a has its shape")
	mustBe(a, 1, x.Cols, "what is multiplied with x by heads is a row of as many columns")
	if x.Cols == 0 {
		return
	}
	d := &e.dotsBack
	*d = dotsBack{e, rowGrain(x.Cols), dx, dy, x, a.F32()}
	e.count(d.grain)
	e.byHeads(x.Cols, dy.Cols)
	e.ready(cut{e.single[:min(d.grain, x.Rows)+1], int64(d.grain)}, dy.Cols, x.Cols)
	chunks := chunksOf(x.Rows, d.grain)
	e.partial = grown(e.partial, chunks*x.Cols)
	e.pool.Run(chunks, d)
	addUp(da.F32(), e.partial[:chunks*x.Cols])
	*d = dotsBack{}
}

// addUp adds rows to a sum, in order.
func addUp(sum, rows []float32) {
	for at := 0; at < len(rows); at += len(sum) {
		for j, v := range rows[at:][:len(sum)] {
			sum[j] += v
		}
	}
}

// Do runs one chunk: it sums its rows, weighted by dy, into one row, and adds a, weighted
// likewise, to each row of dx.
func (d *dotsBack) Do(chunk, worker int) {
	e, s := d.e, &d.e.each[worker]
	first := chunk * d.grain
	n, heads, cols := min(d.grain, d.x.Rows-first), d.dy.Cols, d.x.Cols
	for r := range n {
		copy(s.weights[r*heads:][:heads], d.dy.F32()[(first+r)*d.dy.Stride:])
	}
	s.ends = [2]int64{0, int64(n)}
	s.span = span{
		y: e.partial[chunk*cols:], yStride: cols, cols: cols,
		indptr: s.ends[:], indices: e.inOrder[:n], values: s.weights, heads: heads,
	}
	s.span.from(d.x.RowRange(first, n))
	e.sum(s)
	s.span.x, s.span.xStride = d.a, cols
	s.span.to(d.dx, first)
	s.span.indptr, s.span.indices, s.span.add = e.single[:n+1], e.zeros[:n], true
	e.sum(s)
}
