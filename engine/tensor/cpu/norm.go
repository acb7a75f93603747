package cpu

import (
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/rows"
)

type normTask struct {
	cut
	y, stats, x, gamma, beta tensor.Matrix
	e                        *tensor.Epilogue
}

func (t *normTask) Do(chunk, _ int) {
	first, n := t.at(chunk)
	rows.LayerNorm(t.y, t.stats, t.x, t.gamma, t.beta, first, n, t.e)
}

// LayerNorm implements tensor.Rows.
func (d *Device) LayerNorm(y, stats, x, gamma, beta tensor.Matrix, e *tensor.Epilogue) {
	mustCompute(y)
	mustBe("x", x, tensor.F32, y.Rows, y.Cols)
	mustBe("stats", stats, tensor.F32, y.Rows, 2)
	mustBe("gamma", gamma, tensor.F32, 1, y.Cols)
	mustBe("beta", beta, tensor.F32, 1, y.Cols)
	mustFit(e, y)
	t := &d.norm
	*t = normTask{byRows(y.Rows, y.Cols, grain), y, stats, x, gamma, beta, e}
	d.run(t.chunks, t)
	*t = normTask{}
}

type normBackTask struct {
	cut
	dx, dy, x, stats, gamma tensor.Matrix
	partial                 []float32 // of gamma, then of beta
	stride                  int
}

func (t *normBackTask) Do(chunk, _ int) {
	first, n := t.at(chunk)
	dgamma := t.partial[chunk*t.stride:][:t.cols]
	dbeta := t.partial[(t.chunks+chunk)*t.stride:][:t.cols]
	clear(dgamma)
	clear(dbeta)
	rows.LayerNormBack(t.dx, dgamma, dbeta, t.dy, t.x, t.stats, t.gamma, first, n)
}

// LayerNormBack implements tensor.Rows.
func (d *Device) LayerNormBack(dx, dgamma, dbeta, dy, x, stats, gamma tensor.Matrix) {
	mustCompute(dx)
	mustBe("dy", dy, tensor.F32, dx.Rows, dx.Cols)
	mustBe("x", x, tensor.F32, dx.Rows, dx.Cols)
	mustBe("stats", stats, tensor.F32, dx.Rows, 2)
	mustBe("gamma", gamma, tensor.F32, 1, dx.Cols)
	mustBe("dgamma", dgamma, tensor.F32, 1, dx.Cols)
	mustBe("dbeta", dbeta, tensor.F32, 1, dx.Cols)
	t := &d.normBack
	*t = normBackTask{cut: byRows(dx.Rows, dx.Cols, grain), dx: dx, dy: dy, x: x, stats: stats, gamma: gamma}
	t.partial, t.stride = d.partials(2*t.chunks, t.cols)
	d.run(t.chunks, t)
	rows.AddPartials(dgamma, t.partial, t.stride, t.chunks)
	rows.AddPartials(dbeta, t.partial[t.chunks*t.stride:], t.stride, t.chunks)
	*t = normBackTask{}
}
