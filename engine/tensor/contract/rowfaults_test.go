package contract

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// rows is a device whose operations on rows may be replaced. What is nil is good.
type rows struct {
	*reference.Device
	zero       func(m tensor.Matrix)
	combine    func(y tensor.Matrix, alpha float64, a tensor.Matrix, beta float64, b tensor.Matrix)
	apply      func(y, x tensor.Matrix, e *tensor.Epilogue)
	applyBack  func(dx, dbias, dy, y tensor.Matrix, e *tensor.Epilogue)
	gather     func(y tensor.Matrix, parts []tensor.Part, ids []uint32)
	scatterAdd func(y, x tensor.Matrix, rows []int32)
	norm       func(y, stats, x, gamma, beta tensor.Matrix, e *tensor.Epilogue)
	normBack   func(dx, dgamma, dbeta, dy, x, stats, gamma tensor.Matrix)
	max        func(y, which, x tensor.Matrix, index int, first bool)
	write      func(m tensor.Matrix, from []float64)
}

func (d rows) Zero(m tensor.Matrix) {
	if d.zero != nil {
		d.zero(m)
		return
	}
	d.Device.Zero(m)
}

func (d rows) Combine(y tensor.Matrix, alpha float64, a tensor.Matrix, beta float64, b tensor.Matrix) {
	if d.combine != nil {
		d.combine(y, alpha, a, beta, b)
		return
	}
	d.Device.Combine(y, alpha, a, beta, b)
}

func (d rows) Apply(y, x tensor.Matrix, e *tensor.Epilogue) {
	if d.apply != nil {
		d.apply(y, x, e)
		return
	}
	d.Device.Apply(y, x, e)
}

func (d rows) ApplyBack(dx, dbias, dy, y tensor.Matrix, e *tensor.Epilogue) {
	if d.applyBack != nil {
		d.applyBack(dx, dbias, dy, y, e)
		return
	}
	d.Device.ApplyBack(dx, dbias, dy, y, e)
}

func (d rows) Gather(y tensor.Matrix, parts []tensor.Part, ids []uint32) {
	if d.gather != nil {
		d.gather(y, parts, ids)
		return
	}
	d.Device.Gather(y, parts, ids)
}

func (d rows) ScatterAdd(y, x tensor.Matrix, to []int32) {
	if d.scatterAdd != nil {
		d.scatterAdd(y, x, to)
		return
	}
	d.Device.ScatterAdd(y, x, to)
}

func (d rows) LayerNorm(y, stats, x, gamma, beta tensor.Matrix, e *tensor.Epilogue) {
	if d.norm != nil {
		d.norm(y, stats, x, gamma, beta, e)
		return
	}
	d.Device.LayerNorm(y, stats, x, gamma, beta, e)
}

func (d rows) LayerNormBack(dx, dgamma, dbeta, dy, x, stats, gamma tensor.Matrix) {
	if d.normBack != nil {
		d.normBack(dx, dgamma, dbeta, dy, x, stats, gamma)
		return
	}
	d.Device.LayerNormBack(dx, dgamma, dbeta, dy, x, stats, gamma)
}

func (d rows) Max(y, which, x tensor.Matrix, index int, first bool) {
	if d.max != nil {
		d.max(y, which, x, index, first)
		return
	}
	d.Device.Max(y, which, x, index, first)
}

func (d rows) Write(m tensor.Matrix, from []float64) {
	if d.write != nil {
		d.write(m, from)
		return
	}
	d.Device.Write(m, from)
}

func rowFaults() []fault {
	good := reference.New()
	var none tensor.Matrix
	faults := map[string]map[string]rows{
		"Zero": {
			"gaps between rows too": {zero: func(m tensor.Matrix) {
				if m.Type == tensor.F64 {
					clear(m.F64())
					return
				}
				good.Zero(m)
			}},
			"not the last column": {zero: func(m tensor.Matrix) { good.Zero(m.View(0, m.Rows, 0, max(0, m.Cols-1))) }},
		},
		"Write": {"BF16 cut off": {write: func(m tensor.Matrix, from []float64) {
			x := append([]float64(nil), from...)
			for i := range x {
				if m.Type == tensor.BF16 {
					x[i] = float64(math.Float32frombits(math.Float32bits(float32(x[i])) &^ 0xffff))
				}
			}
			good.Write(m, x)
		}}},
		"Combine": {
			"b is forgotten": {combine: func(y tensor.Matrix, alpha float64, a tensor.Matrix, _ float64, _ tensor.Matrix) {
				good.Combine(y, alpha, a, 0, none)
			}},
			"y is written before b is read": {combine: func(y tensor.Matrix, alpha float64, a tensor.Matrix, beta float64, b tensor.Matrix) {
				good.Combine(y, alpha, a, 0, none)
				if !b.None() {
					good.Combine(y, 1, y, beta, b)
				}
			}},
		},
		"Apply": {
			"bias after activation": {apply: func(y, x tensor.Matrix, e *tensor.Epilogue) {
				good.Apply(y, x, parts(e, false, true, false))
				good.Apply(y, y, parts(e, true, false, true))
			}},
			"dropout does not scale": {apply: func(y, x tensor.Matrix, e *tensor.Epilogue) {
				good.Apply(y, x, e)
				if e != nil && e.Dropout.P > 0 {
					good.Combine(y, 1-float64(e.Dropout.P), y, 0, none)
				}
			}},
			"dropout by row and not by vertex": {apply: func(y, x tensor.Matrix, e *tensor.Epilogue) {
				if e != nil && e.Dropout.P > 0 {
					copied := *e
					copied.Dropout.Vertices = make([]uint32, y.Rows)
					for i := range y.Rows {
						copied.Dropout.Vertices[i] = uint32(i)
					}
					e = &copied
				}
				good.Apply(y, x, e)
			}},
			"columns are dropped one off": {apply: func(y, x tensor.Matrix, e *tensor.Epilogue) {
				good.Apply(y, x, parts(e, true, true, false))
				if e == nil || e.Dropout.P == 0 || y.Cols < 2 {
					return
				}
				good.Apply(y.View(0, y.Rows, 1, y.Cols-1), y.View(0, y.Rows, 1, y.Cols-1), parts(e, false, false, true))
			}},
			"ELU is a leaky ReLU": {apply: func(y, x tensor.Matrix, e *tensor.Epilogue) {
				good.Apply(y, x, parts(e, true, e != nil && e.Activation == tensor.ReLU, false))
				each(y, func(_, _ int, v *float64) {
					if e != nil && e.Activation == tensor.ELU && *v < 0 {
						*v *= .1
					}
				})
				good.Apply(y, y, parts(e, false, false, true))
			}},
		},
		"ApplyBack": {
			"dbias is overwritten": {applyBack: func(dx, dbias, dy, y tensor.Matrix, e *tensor.Epilogue) {
				if !dbias.None() {
					good.Zero(dbias)
				}
				good.ApplyBack(dx, dbias, dy, y, e)
			}},
			"dropout is forgotten": {applyBack: func(dx, dbias, dy, y tensor.Matrix, e *tensor.Epilogue) {
				good.ApplyBack(dx, dbias, dy, y, parts(e, true, true, false))
			}},
			"ELU goes by what is scaled up": {applyBack: func(dx, dbias, dy, y tensor.Matrix, e *tensor.Epilogue) {
				good.ApplyBack(dx, none, dy, y, parts(e, true, true, false))
				good.ApplyBack(dx, dbias, dx, y, parts(e, true, false, true))
			}},
		},
		"Gather": {
			"the first row of a part is the last part's": {gather: func(y tensor.Matrix, parts []tensor.Part, ids []uint32) {
				good.Gather(y, parts, ids)
				if y.Rows > 1 && len(parts) > 1 {
					good.Gather(y.RowRange(0, 1), parts, ids[1:2])
				}
			}},
			"the rest of columns is left": {gather: func(y tensor.Matrix, parts []tensor.Part, ids []uint32) {
				n := y.Cols / 16 * 16
				narrow := append([]tensor.Part(nil), parts...)
				for i := range narrow {
					narrow[i].X = narrow[i].X.View(0, narrow[i].X.Rows, 0, n)
				}
				good.Gather(y.View(0, y.Rows, 0, n), narrow, ids)
			}},
		},
		"ScatterAdd": {"rows that come twice count once": {scatterAdd: func(y, x tensor.Matrix, to []int32) {
			before := clone(y)
			good.ScatterAdd(y, x, to)
			for i, r := range to {
				good.Combine(y.RowRange(int(r), 1), 1, before.RowRange(int(r), 1), 1, x.RowRange(i, 1))
			}
		}}},
		"LayerNorm": {
			"the variance is over one less": {norm: func(y, stats, x, gamma, beta tensor.Matrix, e *tensor.Epilogue) {
				good.LayerNorm(y, stats, x, gamma, beta, nil)
				each(y, func(_, j int, v *float64) {
					n := float64(x.Cols)
					*v = (*v-*at(beta, 0, j))*math.Sqrt((n-1)/n) + *at(beta, 0, j)
				})
				good.Apply(y, y, e)
			}},
			"the epilogue is forgotten": {norm: func(y, stats, x, gamma, beta tensor.Matrix, _ *tensor.Epilogue) {
				good.LayerNorm(y, stats, x, gamma, beta, nil)
			}},
		},
		"LayerNormBack": {
			"dgamma is overwritten": {normBack: func(dx, dgamma, dbeta, dy, x, stats, gamma tensor.Matrix) {
				good.Zero(dgamma)
				good.LayerNormBack(dx, dgamma, dbeta, dy, x, stats, gamma)
			}},
			"dbeta lacks the last row": {normBack: func(dx, dgamma, dbeta, dy, x, stats, gamma tensor.Matrix) {
				if n := dy.Rows; n > 0 {
					good.Combine(dbeta, 1, dbeta, -1, clone(dy.RowRange(n-1, 1)))
				}
				good.LayerNormBack(dx, dgamma, dbeta, dy, x, stats, gamma)
			}},
			"the mean is taken for constant": {normBack: func(dx, dgamma, dbeta, dy, x, stats, gamma tensor.Matrix) {
				kept := clone(dy)
				good.LayerNormBack(dx, dgamma, dbeta, dy, x, stats, gamma)
				each(dx, func(i, _ int, v *float64) {
					for j := range x.Cols {
						*v += *at(stats, i, 1) * *at(kept, i, j) * *at(gamma, 0, j) / float64(x.Cols)
					}
				})
			}},
		},
		"Max": {
			"the last of equal ones": {max: func(y, which, x tensor.Matrix, index int, first bool) {
				good.Max(y, which, x, index, first)
				each(x, func(i, j int, v *float64) {
					if *v == *at(y, i, j) {
						which.I32()[i*which.Stride+j] = int32(index)
					}
				})
			}},
			"the first is compared": {max: func(y, which, x tensor.Matrix, index int, _ bool) {
				good.Max(y, which, x, index, false)
			}},
		},
	}
	var all []fault
	for check, whats := range faults {
		for what, d := range whats {
			d.Device = good
			all = append(all, fault{check, what, d})
		}
	}
	return all
}
