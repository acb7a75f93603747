package contract

import (
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// An aggregator is a device whose Aggregate is another.
type aggregator struct {
	*reference.Device
	f func(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue)
}

func (d aggregator) Aggregate(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue) {
	d.f(y, g, values, x, how, add, e)
}

// An aggregatorBack is as aggregator.
type aggregatorBack struct {
	*reference.Device
	f func(dx tensor.Matrix, g *tensor.CSR, values, dy tensor.Matrix, how tensor.Aggregation, add bool)
}

func (d aggregatorBack) AggregateBack(dx tensor.Matrix, g *tensor.CSR, values, dy tensor.Matrix, how tensor.Aggregation, add bool) {
	d.f(dx, g, values, dy, how, add)
}

// A maximum is as aggregator.
type maximum struct {
	*reference.Device
	f func(y, which tensor.Matrix, g *tensor.CSR, x tensor.Matrix)
}

func (d maximum) AggregateMax(y, which tensor.Matrix, g *tensor.CSR, x tensor.Matrix) {
	d.f(y, which, g, x)
}

// A maximumBack is as aggregator.
type maximumBack struct {
	*reference.Device
	f func(dx tensor.Matrix, g *tensor.CSR, dy, which tensor.Matrix, add bool)
}

func (d maximumBack) AggregateMaxBack(dx tensor.Matrix, g *tensor.CSR, dy, which tensor.Matrix, add bool) {
	d.f(dx, g, dy, which, add)
}

// An attender is as aggregator, with all four of attention.
type attender struct {
	*reference.Device
	drop    func(d tensor.Dropout, own int) (tensor.Dropout, int)
	back    func(dx, dleft, dright tensor.Matrix, g *tensor.CSR)
	backV2  func(dx, dto, da tensor.Matrix)
	forward func(y tensor.Matrix, g *tensor.CSR, p float32)
}

func (d attender) change(drop tensor.Dropout, own int) (tensor.Dropout, int) {
	if d.drop != nil && drop.P > 0 {
		return d.drop(drop, own)
	}
	return drop, own
}

func (d attender) Attend(y, stats tensor.Matrix, g *tensor.CSR, x, left, right tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	drop, own = d.change(drop, own)
	d.Device.Attend(y, stats, g, x, left, right, slope, drop, own)
	if d.forward != nil {
		d.forward(y, g, drop.P)
	}
}

func (d attender) AttendBack(dx, dleft, dright tensor.Matrix, g *tensor.CSR, dy, stats, x, left, right tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	drop, own = d.change(drop, own)
	d.Device.AttendBack(dx, dleft, dright, g, dy, stats, x, left, right, slope, drop, own)
	if d.back != nil {
		d.back(dx, dleft, dright, g)
	}
}

func (d attender) AttendV2(y, stats tensor.Matrix, g *tensor.CSR, x, to, a tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	drop, own = d.change(drop, own)
	d.Device.AttendV2(y, stats, g, x, to, a, slope, drop, own)
	if d.forward != nil {
		d.forward(y, g, drop.P)
	}
}

func (d attender) AttendV2Back(dx, dto, da tensor.Matrix, g *tensor.CSR, dy, stats, x, to, a tensor.Matrix, slope float32, drop tensor.Dropout, own int) {
	drop, own = d.change(drop, own)
	if d.backV2 != nil {
		d.backV2(dx, dto, da)
	}
	d.Device.AttendV2Back(dx, dto, da, g, dy, stats, x, to, a, slope, drop, own)
}

func edgeFaults() []fault {
	good := reference.New()
	var none tensor.Matrix
	// emptied calls f with the rows without entries.
	emptied := func(g *tensor.CSR, f func(t int)) {
		for t := range g.Rows {
			if g.Indptr[t] == g.Indptr[t+1] {
				f(t)
			}
		}
	}
	reversed := func(g *tensor.CSR) *tensor.CSR {
		r := *g
		r.Indices = append([]int32(nil), g.Indices...)
		for t := range g.Rows {
			for i, j := g.Indptr[t], g.Indptr[t+1]-1; i < j; i, j = i+1, j-1 {
				r.Indices[i], r.Indices[j] = r.Indices[j], r.Indices[i]
			}
		}
		return &r
	}
	targets := func(d tensor.Dropout, _ int) (tensor.Dropout, int) { return d, 0 }
	otherKey := func(d tensor.Dropout, own int) (tensor.Dropout, int) {
		d.Key++
		return d, own
	}
	unscaled := func(y tensor.Matrix, _ *tensor.CSR, p float32) { good.Combine(y, 1-float64(p), y, 0, none) }
	return []fault{
		{"Aggregate", "the mean is not divided", aggregator{good, func(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, _ tensor.Aggregation, add bool, e *tensor.Epilogue) {
			good.Aggregate(y, g, values, x, tensor.Sum, add, e)
		}}},
		{"Aggregate", "what is added to is divided, too", aggregator{good, func(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue) {
			if add && how == tensor.Mean {
				for t := range g.Rows {
					n := max(1, g.Indptr[t+1]-g.Indptr[t])
					good.Combine(y.RowRange(t, 1), 1/float64(n), y.RowRange(t, 1), 0, none)
				}
			}
			good.Aggregate(y, g, values, x, how, add, e)
		}}},
		{"Aggregate", "rows without entries are left", aggregator{good, func(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue) {
			before := clone(y)
			good.Aggregate(y, g, values, x, how, add, e)
			emptied(g, func(t int) { good.Combine(y.RowRange(t, 1), 1, before.RowRange(t, 1), 0, none) })
		}}},
		{"Aggregate", "add is forgotten", aggregator{good, func(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, _ bool, e *tensor.Epilogue) {
			good.Aggregate(y, g, values, x, how, false, e)
		}}},
		{"Aggregate", "the graph's own values count", aggregator{good, func(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue) {
			if g.Values != nil {
				values = none
			}
			good.Aggregate(y, g, values, x, how, add, e)
		}}},
		{"Aggregate", "entries are from 0", aggregator{good, func(y tensor.Matrix, g *tensor.CSR, values, x tensor.Matrix, how tensor.Aggregation, add bool, e *tensor.Epilogue) {
			moved := *g
			moved.Indices = append([]int32(nil), g.Indices[:g.Entries()]...)
			moved.Indices = append(make([]int32, g.Indptr[0]), moved.Indices...)
			good.Aggregate(y, &moved, values, x, how, add, e)
		}}},
		{"AggregateBack", "the mean is not divided", aggregatorBack{good, func(dx tensor.Matrix, g *tensor.CSR, values, dy tensor.Matrix, _ tensor.Aggregation, add bool) {
			good.AggregateBack(dx, g, values, dy, tensor.Sum, add)
		}}},
		{"AggregateBack", "values are in another order", aggregatorBack{good, func(dx tensor.Matrix, g *tensor.CSR, values, dy tensor.Matrix, how tensor.Aggregation, add bool) {
			good.AggregateBack(dx, reversed(g), values, dy, how, add)
		}}},
		{"AggregateBack", "one row off", aggregatorBack{good, func(dx tensor.Matrix, g *tensor.CSR, values, dy tensor.Matrix, how tensor.Aggregation, add bool) {
			moved := clone(dy)
			if n := dy.Rows; n > 1 {
				good.Combine(moved.RowRange(1, n-1), 1, dy.RowRange(0, n-1), 0, none)
			}
			good.AggregateBack(dx, g, values, moved, how, add)
		}}},
		{"AggregateMax", "the last of equal ones", maximum{good, func(y, which tensor.Matrix, g *tensor.CSR, x tensor.Matrix) {
			good.AggregateMax(y, which, reversed(g), x)
		}}},
		{"AggregateMax", "nothing is below 0", maximum{good, func(y, which tensor.Matrix, g *tensor.CSR, x tensor.Matrix) {
			good.AggregateMax(y, which, g, x)
			good.Apply(y, y, &tensor.Epilogue{Activation: tensor.ReLU})
		}}},
		{"AggregateMax", "rows without entries choose source 0", maximum{good, func(y, which tensor.Matrix, g *tensor.CSR, x tensor.Matrix) {
			good.AggregateMax(y, which, g, x)
			emptied(g, func(t int) { good.Zero(which.RowRange(t, 1)) })
		}}},
		{"AggregateMaxBack", "add is forgotten", maximumBack{good, func(dx tensor.Matrix, g *tensor.CSR, dy, which tensor.Matrix, _ bool) {
			good.AggregateMaxBack(dx, g, dy, which, false)
		}}},
		{"AggregateMaxBack", "double entries count twice", maximumBack{good, func(dx tensor.Matrix, g *tensor.CSR, dy, which tensor.Matrix, add bool) {
			if !add {
				good.Zero(dx)
			}
			for t := range g.Rows {
				for _, s := range g.Indices[g.Indptr[t]:g.Indptr[t+1]] {
					for j := range dy.Cols {
						if which.I32()[t*which.Stride+j] == s {
							*at(dx, int(s), j) += *at(dy, t, j)
						}
					}
				}
			}
		}}},
		{"Attend", "own is forgotten", attender{Device: good, drop: targets}},
		{"Attend", "dropout under another key", attender{Device: good, drop: otherKey}},
		{"Attend", "dropout does not scale", attender{Device: good, forward: unscaled}},
		{"Attend", "rows without entries are left", attender{Device: good, forward: func(y tensor.Matrix, g *tensor.CSR, _ float32) {
			emptied(g, func(t int) {
				good.Combine(y.RowRange(t, 1), 0, y.RowRange(t, 1), 0, none)
				each(y.RowRange(t, 1), spoil)
			})
		}}},
		{"AttendV2", "own is forgotten", attender{Device: good, drop: targets}},
		{"AttendV2", "dropout does not scale", attender{Device: good, forward: unscaled}},
		{"AttendBack", "dropout under another key", attender{Device: good, drop: otherKeyFor(1)}},
		{"AttendBack", "dleft of sources without entries is left", attender{Device: good, back: func(_, dleft, _ tensor.Matrix, g *tensor.CSR) {
			for s := range g.Cols {
				if t := g.Transposed; t.Indptr[s] == t.Indptr[s+1] {
					each(dleft.RowRange(s, 1), spoil)
				}
			}
		}}},
		{"AttendBack", "dright has a wrong last head", attender{Device: good, back: func(_, _, dright tensor.Matrix, _ *tensor.CSR) {
			each(dright.View(0, dright.Rows, dright.Cols-1, 1), func(_, _ int, v *float64) { *v *= 1.01 })
		}}},
		{"AttendV2Back", "da is overwritten", attender{Device: good, backV2: func(_, _, da tensor.Matrix) { good.Zero(da) }}},
	}
}

// spoil is what stood in memory.
func spoil(_, _ int, v *float64) { *v = 1 }

// otherKeyFor changes the key from the second use on: forward it is right.
func otherKeyFor(forward int) func(d tensor.Dropout, own int) (tensor.Dropout, int) {
	used := map[uint64]int{}
	return func(d tensor.Dropout, own int) (tensor.Dropout, int) {
		if used[uint64(d.Key)]++; used[uint64(d.Key)] > forward {
			d.Key++
		}
		return d, own
	}
}
