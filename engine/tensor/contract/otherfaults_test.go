package contract

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// A multiplier is a device whose MatMul is another.
type multiplier struct {
	*reference.Device
	f func(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue)
}

func (d multiplier) MatMul(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
	d.f(c, a, b, shape, add, e)
}

// A grower has arenas that forget what they have.
type grower struct{ *reference.Device }

type growing struct{ tensor.Arena }

func (g growing) Reset() { g.Alloc(tensor.F64, 1, 1) }

func (d grower) NewArena(bytes int) (tensor.Arena, error) {
	a, err := d.Device.NewArena(bytes)
	return growing{a}, err
}

// A stumbler is wrong, each time in another way, in the operations that have one
// fault only.
type stumbler struct{ *reference.Device }

func (d stumbler) ScaleRows(y, x, scale tensor.Matrix) {
	d.Device.ScaleRows(y, x, scale)
	if y.Rows > 0 && y.Cols > 4 {
		each(y.View(y.Rows-1, 1, y.Cols/4*4, y.Cols%4), spoil)
	}
}

func (d stumbler) MaxBack(dx, dy, which tensor.Matrix, index int) {
	d.Device.MaxBack(dx, dy, which, index+1)
}

func (d stumbler) ColumnSums(sums, x tensor.Matrix) {
	d.Zero(sums)
	d.Device.ColumnSums(sums, x)
}

func (d stumbler) Densify(y tensor.Matrix, g *tensor.CSR) {
	ones := *g
	ones.Values = nil
	d.Device.Densify(y, &ones)
}

func (d stumbler) DropValues(to, from tensor.Matrix, g *tensor.CSR, drop tensor.Dropout) {
	byPlace := *g
	byPlace.Indices = append([]int32(nil), g.Indices...)
	byPlace.Cols = len(g.Indices) + 1
	for i := range byPlace.Indices {
		byPlace.Indices[i] = int32(i)
	}
	d.Device.DropValues(to, from, &byPlace, drop)
}

func (d stumbler) Finite(m tensor.Matrix) bool {
	return d.Device.Finite(m.View(0, m.Rows, 0, max(0, m.Cols-1)))
}

func (d stumbler) HeadDot(y, x, a tensor.Matrix) {
	width := x.Cols / y.Cols
	turned := clone(a)
	d.Device.HeadDot(y, x, turned)
	if y.Cols > 1 {
		d.Device.HeadDot(y.View(0, y.Rows, 1, y.Cols-1), x.View(0, x.Rows, 0, x.Cols-width), a.View(0, 1, 0, a.Cols-width))
	}
}

func (d stumbler) HeadDotBack(dx, da, dy, x, a tensor.Matrix) {
	d.Zero(da)
	d.Device.HeadDotBack(dx, da, dy, x, a)
}

// A learner is wrong in losses and updates.
type learner struct {
	*reference.Device
	judge func(dz, z tensor.Matrix, labels []int32, loss float64, right int) (float64, int)
	adam  func(w, g, m, v tensor.Matrix, o tensor.AdamStep)
}

func (d learner) CrossEntropy(dz, z tensor.Matrix, labels []int32, scale float64) (float64, int) {
	before := clone(z)
	loss, right := d.Device.CrossEntropy(dz, z, labels, scale)
	return d.judge(dz, before, labels, loss, right)
}

func (d learner) BinaryCrossEntropy(dz, z tensor.Matrix, labels []int32, scale float64) (float64, int) {
	before := clone(z)
	loss, right := d.Device.BinaryCrossEntropy(dz, z, labels, scale)
	return d.judge(dz, before, labels, loss, right)
}

func (d learner) Adam(w, g, m, v tensor.Matrix, o tensor.AdamStep) { d.adam(w, g, m, v, o) }

func (d learner) SGD(w, g, m tensor.Matrix, o tensor.SGDStep) {
	o.Decay = 0
	d.Device.SGD(w, g, m, o)
}

func otherFaults() []fault {
	good := reference.New()
	var none tensor.Matrix
	lastOfEqual := func(_, z tensor.Matrix, labels []int32, loss float64, _ int) (float64, int) {
		right := 0
		for i, label := range labels {
			best := 0
			for j := range z.Cols {
				if *at(z, i, j) >= *at(z, i, best) {
					best = j
				}
			}
			if label >= 0 && best == int(label) {
				right++
			}
		}
		return loss, right
	}
	allCount := func(dz, _ tensor.Matrix, labels []int32, loss float64, right int) (float64, int) {
		for i := range labels {
			if labels[i] < 0 && !dz.None() {
				each(dz.RowRange(i, 1), spoil)
			}
		}
		return loss, right
	}
	averaged := func(_, _ tensor.Matrix, labels []int32, loss float64, right int) (float64, int) {
		return loss / max(1, float64(len(labels))), right
	}
	return []fault{
		{"Arena", "it grows with each Reset", grower{good}},
		{"MatMul", "the last column is off", multiplier{good, func(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
			good.MatMul(c, a, b, shape, add, e)
			if c.Cols%16 == 15 {
				each(c.View(0, c.Rows, c.Cols-1, 1), func(_, _ int, v *float64) { *v *= 1.01 })
			}
		}}},
		{"MatMul", "add is forgotten", multiplier{good, func(c, a, b tensor.Matrix, shape tensor.Shape, _ bool, e *tensor.Epilogue) {
			good.MatMul(c, a, b, shape, false, e)
		}}},
		{"MatMul", "add after the epilogue", multiplier{good, func(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
			before := clone(c)
			good.MatMul(c, a, b, shape, false, e)
			if add {
				good.Combine(c, 1, c, 1, before)
			}
		}}},
		{"MatMul", "bias after activation", multiplier{good, func(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
			good.MatMul(c, a, b, shape, add, parts(e, false, true, false))
			good.Apply(c, c, parts(e, true, false, true))
		}}},
		{"MatMul", "no epilogue where there is nothing to sum", multiplier{good, func(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
			if a.Rows == 0 && shape == tensor.TN || a.Cols == 0 && shape != tensor.TN {
				e = nil
			}
			good.MatMul(c, a, b, shape, add, e)
		}}},
		{"MatMul", "the epilogue at each cut of the sum", multiplier{good, func(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
			if shape != tensor.NN || a.Cols <= 384 {
				good.MatMul(c, a, b, shape, add, e)
				return
			}
			good.MatMul(c, a.View(0, a.Rows, 0, 384), b.RowRange(0, 384), shape, add, e)
			good.MatMul(c, a.View(0, a.Rows, 384, a.Cols-384), b.RowRange(384, b.Rows-384), shape, true, e)
		}}},
		{"MatMul", "a gap between rows is written", multiplier{good, func(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
			good.MatMul(c, a, b, shape, add, e)
			if c.Rows > 1 && c.Cols > 0 && c.Stride > c.Cols {
				c.F64()[c.Cols] = 0
			}
		}}},
		{"MatMul", "an operand is spoilt", multiplier{good, func(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
			good.MatMul(c, a, b, shape, add, e)
			good.Combine(b, 1+1e-15, b, 0, none)
		}}},
		{"MatMul", "rows are dropped by those of a chunk", multiplier{good, func(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
			good.MatMul(c, a, b, shape, add, parts(e, true, true, false))
			for i := range c.Rows {
				if p := parts(e, false, false, true); p != nil && p.Dropout.P > 0 {
					p.Dropout.Vertices = e.Dropout.Vertices[i%64:]
					good.Apply(c.RowRange(i, 1), c.RowRange(i, 1), p)
				}
			}
		}}},
		{"ScaleRows", "the rest of the last row", stumbler{good}},
		{"MaxBack", "one index off", stumbler{good}},
		{"ColumnSums", "what was there is lost", stumbler{good}},
		{"Densify", "values are forgotten", stumbler{good}},
		{"DropValues", "dropout by place and not by column", stumbler{good}},
		{"Finite", "the last column is not looked at", stumbler{good}},
		{"HeadDot", "one head off", stumbler{good}},
		{"HeadDotBack", "da is overwritten", stumbler{good}},
		{"CrossEntropy", "the last of equal ones", learner{Device: good, judge: lastOfEqual}},
		{"CrossEntropy", "rows without labels have a gradient", learner{Device: good, judge: allCount}},
		{"CrossEntropy", "the loss is a mean", learner{Device: good, judge: averaged}},
		{"BinaryCrossEntropy", "the last of equal ones", learner{Device: good, judge: lastOfEqual}},
		{"BinaryCrossEntropy", "rows without labels have a gradient", learner{Device: good, judge: allCount}},
		{"Adam", "moments are not corrected", learner{Device: good, adam: func(w, g, m, v tensor.Matrix, o tensor.AdamStep) {
			o.Step += math.MaxUint32
			good.Adam(w, g, m, v, o)
		}}},
		{"Adam", "decay is always of the gradient", learner{Device: good, adam: func(w, g, m, v tensor.Matrix, o tensor.AdamStep) {
			o.Decoupled = false
			good.Adam(w, g, m, v, o)
		}}},
		{"SGD", "decay is forgotten", learner{Device: good}},
	}
}
